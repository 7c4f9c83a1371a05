// --predict: what a trained net says about single images.
#pragma once

#include <string>
#include <vector>

#include "train/options.h"
#include "train/trainer.h"

namespace tandem {

struct Guess {
  std::int64_t index = 0;  // of the class
  std::string name;        // of the class; its number if it has no name
  double probability = 0;
};

// Prints a line per image: the most probable classes (at most five), best first. With --json, each
// line is an object. `options` come from check_options(). Throws UserError, which names the file,
// if an image cannot be decoded; the images before it have their lines.
void predict(const Task& task, const TrainOptions& options);

// The line of an image.
std::string text_of(const std::string& file, const std::vector<Guess>& guesses);
std::string json_of(const std::string& file, const std::vector<Guess>& guesses);

}  // namespace tandem
