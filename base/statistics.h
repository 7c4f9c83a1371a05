// Sums and statistics.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tandem {

// The sum of a member over all elements.
template <class Element, class T>
T total(const std::vector<Element>& elements, T Element::*member) {
  T sum = 0;
  for (const Element& element : elements) sum += element.*member;
  return sum;
}

// The value below which `share` of the values lie (nearest rank); 0 if there are none.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto index =
      static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

// The middle value, or the mean of the two in the middle; 0 if there are none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// 0 if there are none.
inline double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

}  // namespace tandem
