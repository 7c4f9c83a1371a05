#include "dist/agreement.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/monitor.h"
#include "dist/launch.h"
#include "dist/transport/collectives.h"
#include "tests/dist/ranks.h"
#include "tests/support.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Lists = std::vector<std::vector<Trait>>;

// What the ranks with these lists find; all must find the same. A text: "ranks: theirs | rank 0's".
std::string found(const Lists& lists) {
  Monitor<std::vector<std::string>> all;
  const int ranks = static_cast<int>(lists.size());
  on_ranks(ranks, [&](Transport& transport) {
    const auto d =
        first_difference(transport, ranks, lists[static_cast<std::size_t>(transport.rank())]);
    const std::string text = d ? name_of_ranks(d->ranks) + ": " + d->trait.name + " " +
                                     d->trait.value + " | " + d->of_rank_0.name + " " +
                                     d->of_rank_0.value
                               : "nothing";
    all.change([&](auto& texts) { texts.push_back(text); });
  });
  return all.change([&](const auto& texts) {
    CHECK(texts.size() == lists.size());
    for (const std::string& text : texts) CHECK(text == texts[0]);
    return texts[0];
  });
}

}  // namespace

TEST_CASE("agreement: equal ranks find no difference") {
  for (const std::size_t ranks : {1, 2, 5}) {
    CHECK(found(Lists(ranks)) == "nothing");
    CHECK(found(Lists(ranks, {{"--lr", "0.1"}, {"--load", ""}})) == "nothing");
  }
}

TEST_CASE("agreement: the first difference is found, with all ranks that differ") {
  const std::vector<Trait> same = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  Lists lists(4, same);
  lists[2][2] = {"c", "4"};
  CHECK(found(lists) == "rank 2: c 4 | c 3");
  lists[1][1] = {"b", ""};  // earlier in the list, so it comes first
  CHECK(found(lists) == "rank 1: b  | b 2");
  lists[3][1] = {"b", "5"};
  CHECK(found(lists) == "ranks 1 and 3: b  | b 2");
  lists[0][0] = {"a", "0"};  // rank 0 is the odd one, but the others cannot know
  CHECK(found(lists) == "ranks 1, 2 and 3: a 1 | a 0");
}

TEST_CASE("agreement: lists of different lengths differ where one ends") {
  CHECK(found({{{"a", "1"}}, {{"a", "1"}, {"b", "2"}}}) == "rank 1: b 2 |  ");
  CHECK(found({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}}}) == "rank 1:   | b 2");
  CHECK(found({{{"a", "1"}}, {{"b", "1"}}}) == "rank 1: b 1 | a 1");
}

TEST_CASE("broadcast: every rank gets rank 0's values") {
  on_ranks(4, [](Transport& transport) {
    Bytes bytes(static_cast<std::size_t>(3 - transport.rank()),
                static_cast<std::byte>(transport.rank()));
    broadcast(transport, 4, bytes);
    CHECK(bytes == Bytes(3, std::byte{0}));
  });
}

TEST_CASE("launch: the reporting rank's error is thrown, not SaidElsewhere") {
  CHECK(message_of<UserError>([&] {
          run_on_ranks({.app = "test", .ranks = 3}, [](Communication& communication) {
            Transport& transport = communication.transport();
            communication.call([&] { barrier(transport, 3); });
            if (transport.rank() != 0) throw SaidElsewhere();
            throw UserError("this is wrong");
          });
        }) == "this is wrong");
}
