// A model's weights in a file, and their fingerprint. Files hold what PyTorch's state dicts hold,
// in its layout: filters as [k, c, h, w], and the columns of a linear layer behind a flatten with
// the channels first (Parameter::image), whereas here the channels come last.
#pragma once

#include <filesystem>
#include <string>

#include "autograd/parameter.h"

namespace tandem {

void save_weights(const std::filesystem::path& path, const ParameterSet& parameters);

// Every parameter must be in the file with its shape and finite values, and nothing else; else
// UserError.
void load_weights(const std::filesystem::path& path, ParameterSet& parameters);

// The fixed weights alone: each must be in the file, which may hold others, too.
void load_fixed_weights(const std::filesystem::path& path, ParameterSet& parameters);

// The name of a parameter that holds NaN or infinity; empty if there is none.
std::string first_not_finite(const ParameterSet& parameters);

// FNV-1a (64 bits, as 16 hex digits) over the bytes of all parameters in their order: equal if
// and, for practical purposes, only if all weights are equal to the last bit.
std::string weights_hash(const ParameterSet& parameters);

}  // namespace tandem
