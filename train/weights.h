// A model's weights in a file, and their fingerprint. Files hold the same as PyTorch's state dicts,
// in PyTorch's layout: filters are [k, c, h, w], and the columns of a linear layer after a flatten
// have the channels first (Parameter::image). In memory the channels come last.
#pragma once

#include <filesystem>
#include <string>

#include "autograd/parameter.h"

namespace tandem {

void save_weights(const std::filesystem::path& path, const ParameterSet& parameters);

// Throws UserError unless the file has every parameter, with its shape and finite values, and
// nothing else.
void load_weights(const std::filesystem::path& path, ParameterSet& parameters);

// Loads only the fixed weights. Each must be in the file, which may hold others too.
void load_fixed_weights(const std::filesystem::path& path, ParameterSet& parameters);

// The name of a parameter that holds NaN or infinity; empty if there is none.
std::string first_not_finite(const ParameterSet& parameters);

// FNV-1a (64 bits, as 16 hex digits) over the bytes of all parameters in order. Equal hashes mean,
// for practical purposes, bitwise equal weights.
std::string weights_hash(const ParameterSet& parameters);

}  // namespace tandem
