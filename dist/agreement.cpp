#include "dist/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "dist/transport/collectives.h"

namespace tandem {
namespace {

Bytes to_bytes(const std::vector<std::string>& texts) {
  Bytes bytes;
  for (const std::string& text : texts) {
    const auto more = std::as_bytes(std::span(text.c_str(), text.size() + 1));
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

std::vector<std::string> texts_in(const Bytes& bytes) {
  std::vector<std::string> texts;
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  for (const char* end = text + bytes.size(); text < end; text += texts.back().size() + 1)
    texts.emplace_back(text);
  return texts;
}

std::vector<Trait> traits_in(const Bytes& bytes) {
  std::vector<Trait> traits;
  const std::vector<std::string> texts = texts_in(bytes);
  for (std::size_t i = 0; i < texts.size(); i += 2) traits.push_back({texts[i], texts[i + 1]});
  return traits;
}

std::optional<Difference> find_difference(const std::vector<Bytes>& all) {
  std::optional<Difference> found;
  const std::vector<Trait> first = traits_in(all[0]);
  std::ptrdiff_t at = 0;  // index of the trait in `found`
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<Trait> own = traits_in(all[rank]);
    const auto [of_rank_0, trait] = std::ranges::mismatch(first, own);
    if (of_rank_0 == first.end() && trait == own.end()) continue;
    const std::ptrdiff_t here = of_rank_0 - first.begin();
    if (!found || here < at) {
      at = here;
      found = {{},
               trait == own.end() ? Trait{} : *trait,
               of_rank_0 == first.end() ? Trait{} : *of_rank_0};
    }
    if (here == at) found->ranks.push_back(static_cast<int>(rank));
  }
  return found;
}

}  // namespace

std::string name_of_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "),
                     ranks.back());
}

std::optional<Difference> first_difference(Transport& transport, int ranks,
                                           const std::vector<Trait>& own) {
  std::vector<std::string> texts;
  for (const Trait& trait : own) texts.insert(texts.end(), {trait.name, trait.value});
  const std::vector<Bytes> all = gather(transport, ranks, to_bytes(texts));

  Bytes verdict;  // empty: all agree
  if (transport.rank() == 0)
    if (const auto d = find_difference(all)) {
      texts = {d->trait.name, d->trait.value, d->of_rank_0.name, d->of_rank_0.value};
      for (const int rank : d->ranks) texts.push_back(std::to_string(rank));
      verdict = to_bytes(texts);
    }
  broadcast(transport, ranks, verdict);
  if (verdict.empty()) return std::nullopt;
  texts = texts_in(verdict);
  Difference difference{{}, {texts[0], texts[1]}, {texts[2], texts[3]}};
  for (std::size_t i = 4; i < texts.size(); ++i) difference.ranks.push_back(std::stoi(texts[i]));
  return difference;
}

}  // namespace tandem
