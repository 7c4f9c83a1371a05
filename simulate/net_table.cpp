#include "simulate/net_table.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/statistics.h"
#include "train/json_input.h"
#include "train/words.h"

namespace tandem {
namespace {

constexpr const char* kFirstLine = "tandem net 1";
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;
constexpr double kMostFlop = 1e18;
constexpr std::size_t kMostTensors = 100'000;

void take_line(const std::string& line, NetTable& table) {
  Words words(line);
  const std::string what = words.word("a word");
  if (what == "source") {
    if (!table.source.empty()) throw UserError("it has two sources");
    table.source = shown(words.rest(), 1000);
    return;
  }
  if (what == "net") {
    if (!table.net.empty()) throw UserError("it has two names");
    table.net = shown(words.word("the net's name"));
  } else if (what == "tensor" && table.tensors.size() < kMostTensors) {
    NetTable::Tensor& tensor = table.tensors.emplace_back();
    tensor.name = words.word("a tensor's name");
    tensor.elements = words.whole("its number of elements", kMostElements);
    tensor.forward_flop = words.number("forward's FLOP", 0, kMostFlop);
    tensor.backward_flop = words.number("backward's FLOP", 0, kMostFlop);
  } else {
    throw UserError("{} begins no line of a net", shown(what, 40));
  }
  words.end();
}

void check(const NetTable& table) {
  if (table.net.empty()) throw UserError("it does not name the net");
  if (table.tensors.empty()) throw UserError("it has no tensor");
  std::set<std::string> names;
  for (const NetTable::Tensor& tensor : table.tensors)
    if (!names.insert(tensor.name).second)
      throw UserError("two tensors are called {}", shown(tensor.name, 40));
  if (table.forward_flop() <= 0 || table.backward_flop() <= 0)
    throw UserError("its forward or backward computes nothing");
  if (table.parameters() > kMostElements)
    throw UserError("it has more than {} elements", kMostElements);
}

}  // namespace

std::int64_t NetTable::parameters() const { return total(tensors, &Tensor::elements); }
double NetTable::forward_flop() const { return total(tensors, &Tensor::forward_flop); }
double NetTable::backward_flop() const { return total(tensors, &Tensor::backward_flop); }

std::string to_text(const NetTable& table) {
  std::string text = fmt::format("{}\nnet {}\nsource {}\n", kFirstLine, table.net, table.source);
  text += fmt::format("# {} parameters; name, elements, FLOP of forward and backward\n",
                      table.parameters());
  for (const NetTable::Tensor& t : table.tensors)
    text +=
        fmt::format("tensor {} {} {} {}\n", t.name, t.elements, t.forward_flop, t.backward_flop);
  return text;
}

NetTable read_net_table(const std::filesystem::path& path) {
  NetTable table;
  read_lines(
      path, {.what = "a net", .first_line = kFirstLine},
      [&](const std::string& line) { take_line(line, table); }, [&] { check(table); });
  return table;
}

}  // namespace tandem
