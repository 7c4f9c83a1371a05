#include "train/profile_file.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const std::string kBegin = "tandem profile 1\nbatch 2\n", kTensor = "tensor a 10 1 2\n";

std::string refusal(const std::string& text) { return refusal_of_file("p", text, read_profile); }

}  // namespace

TEST_CASE("profile file: what is written is read back") {
  const Profile profile{.net = "A net",
                        .source = "some --command with 'words'",
                        .batch = 32,
                        .tensors = {{"a.weight", 100, 1e-3, 2e-3}, {"a.bias", 1, 0, 1e-9}},
                        .host = {{"none", {.check = 1e-10, .add = 3e-10, .update = 1}},
                                 {"quant8", {.compress = 2e-9, .decompress = 1e-9}}},
                        .spread = {0.5, 1, 1.5},
                        .iterations = {{1, 0.5}, {0.9, 1.6}}};
  const TemporaryFolder folder;
  write_bytes(folder / "p", to_text(profile));
  const Profile read = read_profile(folder / "p");
  CHECK(to_text(read) == to_text(profile));
  CHECK(read.elements() == 101);
  CHECK(read.forward_s() == doctest::Approx(1e-3));
  CHECK(read.backward_s() == doctest::Approx(2e-3 + 1e-9));
  CHECK(read.host.at("quant8").compress == doctest::Approx(2e-9));
}

TEST_CASE("profile file: what is wrong is refused with its line") {
  CHECK(refusal("") == "p: the file is empty");
  CHECK(refusal("hello\n") == "p, line 1: it does not begin with 'tandem profile 1'");
  CHECK(refusal(kBegin) == "p: it has no tensor");
  CHECK(refusal(kBegin + "tensor a 10 0 0\n") == "p: computing takes no time");
  CHECK(refusal(kBegin + "tensor a 10 -1 2\n") ==
        "p, line 3: forward's time must be a number from 0 to 1000000000000, not -1");
  CHECK(refusal(kBegin + "tensor a 0 1 2\n") ==
        "p, line 3: its number of elements must be a whole number from 1 to 68719476736, not 0");
  CHECK(refusal(kBegin + "tensor a 10 nan 2\n").ends_with("not nan"));
  CHECK(refusal(kBegin + "tensor a 10 1\n") == "p, line 3: backward's time is missing");
  CHECK(refusal(kBegin + "tensor a 10 1 2 3\n") == "p, line 3: 3 does not belong there");
  CHECK(refusal(kBegin + "tenser a 10 1 2\n") == "p, line 3: tenser begins no line of a profile");
  CHECK(refusal(kBegin + kTensor + "spread 2 1\n") == "p: the spread is not in order");
  CHECK(refusal(kBegin + kTensor + "spread 0\n").ends_with("not 0"));
  CHECK(refusal(kBegin + kTensor + "iteration 1 1\niteration 1\n") ==
        "p: its iterations are not all of the same number of workers");
  CHECK(refusal(kBegin + kTensor + "host zip\n") == "p, line 4: there is no compressor zip");
  CHECK(refusal(kBegin + kTensor + "host none add 1\n") == "p, line 4: add is not check");
  CHECK(message_of<UserError>([] { read_profile("/no/such/file"); }).find("/no/such/file") !=
        std::string::npos);
}
