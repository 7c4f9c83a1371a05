// For a run that continues with the results of an earlier one.
#pragma once

#include "base/error.h"
#include "speedup/results.h"

namespace tandem {

// Throws UserError if a setting of the earlier run was another one: "it holds results with --seed
// 1, not 2".
template <class T, class U>
void require_same(const char* what, const T& earlier, const U& now) {
  if (earlier != now) throw UserError("it holds results with {} {}, not {}", what, earlier, now);
}

// `now` has the cells that are asked for. Adds the other finished cells of `earlier`, and sorts all
// of them.
void keep_others(const Results& earlier, Results& now);

}  // namespace tandem
