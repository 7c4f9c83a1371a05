#include "speedup/reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "speedup/html.h"
#include "speedup/table.h"

namespace tandem {
namespace {

std::string simulated_reading() {
  return R"(<h2 id="reading">How to read this</h2>
<dl>
<dt>iteration</dt><dd>The mean over the first worker's iterations, in virtual time, once they repeat or without the first ones.</dd>
<dt>samples/s</dt><dd>Of all workers together.</dd>
<dt>speedup over</dt><dd>The other algorithm's iteration time divided by this one's, with the same workers and link. Same bits: over
D-Sync with the same compression.</dd>
<dt>compute, compress, exposed</dt><dd>Forward, backward and update; compression that the compute thread waits for; communication that it
waits for. Means over the workers.</dd>
<dt>hidden</dt><dd>Communication and compression in parallel with computation.</dd>
<dt>MB sent</dt><dd>Per iteration by all ranks together, in millions of bytes.</dd>
<dt>ranks</dt><dd>All were simulated, or one that stands for all, because all do the same at the same time.</dd>
</dl>
<p>The documentation has more: <code>docs/15-a-thousand-workers.md</code> explains simulations, and what they do not know.</p>
)";
}

std::string asynchronous_reading(const Results& results) {
  const auto names = asynchronous_names(results);
  if (names.empty()) return "";
  return fmt::format(
      R"(<dt>{}</dt><dd>Asynchronous: workers do not wait for each other. The iteration is that of the first worker. The weights
depend on who is faster, so two runs differ: accuracy and curves are those of one run over the same link, which kept its weights
from time to time and tested them at the end.</dd>
)",
      escaped(fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

std::string reading_html(const Results& results) {
  if (results.simulated) return simulated_reading();
  return fmt::format(
      R"(<h2 id="reading">How to read this</h2>
<p>A parameter server (PS-Sync) moves all gradients and weights through one NIC (network card). D-Sync sums the gradients in
a ring of workers, so that all NICs carry the same load. But an iteration does one thing after the other:</p>
<p><code>update + compute + communicate</code> <span class="soft">(Eq. 2)</span></p>
<p>Pipe-SGD updates with the gradients of an earlier iteration. Computation and communication then run in parallel, and
only the longer of the two counts:</p>
<p><code>max(update + compute, communicate)</code> <span class="soft">(Eq. 4)</span></p>
<p>So it gains most, a factor of two, where both take equally long. Compression shortens communication: +T sends 16 instead
of 32 bits per number, +Q sends 8.</p>
<dl>
<dt>iteration</dt><dd>The mean over the timed iterations of all repeats; ± is half the range from the fastest to the slowest
repeat. The median is over all timed iterations. If it is far from the mean, some iterations took much longer than others.</dd>
<dt>s to {}</dt><dd>Training time in seconds{} until the first of three tests in a row with that accuracy. Near the end of the
run, the remaining tests suffice. Stale or compressed gradients can need more iterations; this column includes them.</dd>
<dt>speedup over</dt><dd>The other algorithm's iteration time divided by this one's, with the same number of workers and the same
link. Same bits: over D-Sync with the same compression.</dd>
<dt>compute</dt><dd>Loading data, forward, backward and update.</dd>
<dt>compress</dt><dd>Compressing, decompressing and summing compressed values, as far as the compute thread waits for it.</dd>
<dt>exposed</dt><dd>Communication that the compute thread waits for: sending, receiving, plain sums, and the wait for slower workers.</dd>
<dt>other</dt><dd>The rest of the iteration: handing over to the other thread, waking up, gaps between the measured spans.</dd>
<dt>hidden</dt><dd>Communication and compression in parallel with computation. It is not part of the iteration's time. The other four are;
their sum is the mean.</dd>
<dt>wait</dt><dd>In timelines: a thread waits for the other thread of its worker. The compute thread's waits are compress, exposed and
part of other.</dd>
<dt>predicted</dt><dd>The iteration time computed from the measured compute times of the slowest worker and the calibrated network. D-Sync: the
paper's equation 2. Pipe-SGD: equation 5. PS-Sync: equation 2 with the time that a server's NIC needs for the data of all workers.
Local-SGD: equation 2 with the all-reduce's time divided by <code>--period</code>. WFBP, Buckets, MG-WFBP and Merge: equation 21 of
the MG-WFBP paper, from times that the run measured. A dash: there is no equation for it.</dd>
{}<dt>MB sent</dt><dd>Sent per iteration by all ranks together, in millions of bytes.</dd>
<dt>*</dt><dd>The measurement was disturbed: other programs took more than 5% of the cores' time, the hypervisor more than 1%, or one
repeat had more than twice as many involuntary context switches as another.</dd>
</dl>
<p>The documentation has more: <code>docs/05-overlap.md</code> explains the paper's argument,
<code>docs/emulated-link.md</code> explains links such as <code>1gbe</code>, <code>docs/results</code> has more measurements.</p>
)",
      target_text(results),
      results.extrapolates() ? " (iterations times the mean iteration time)"
                             : ", including its start,",
      asynchronous_reading(results));
}

}  // namespace tandem
