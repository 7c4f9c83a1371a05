// Profiles (dist/timing/profile.h) as text files: one line per fact or parameter tensor.
//
//   tandem profile 1
//   net MNIST-MLP
//   source mnist_mlp --workers 4 --batch 100 …
//   batch 25
//   spread 0.97 0.99 1 1.01 1.05
//   iteration 0.98 1.01 0.97 1.04
//   host none check 1e-10 compress 0 decompress 0 add 4e-10 copy 2e-10 update 5e-10
//   tensor 0.weight 392000 812.5 1711.25
//
// There are many lines of iterations, each with a number for each worker. A tensor has its name,
// elements, and microseconds of forward and backward. Lines that begin with # are comments.
#pragma once

#include <filesystem>
#include <string>

#include "dist/timing/profile.h"

namespace tandem {

std::string to_text(const Profile& profile);
// Throws UserError, which names the file and the line, if it is not a profile.
Profile read_profile(const std::filesystem::path& path);

}  // namespace tandem
