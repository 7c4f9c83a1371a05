// How calls of convolutions are computed, once that has been found out: remembered for all workers
// of this process, and in a file for later ones.
#pragma once

#include <optional>
#include <string>

#include "tensor/choices.h"
#include "tensor/cuda/convolution/convolution_call.h"
#include "tensor/cuda/convolution/engine_search.h"
#include "tensor/memo_file.h"

namespace tandem::cuda {

struct ConvolutionChoice {
  ConvolutionForm form;
  dnn::EnginePlace place;  // of nothing where the form is unrolled
  std::string engine;
  float milliseconds = 0;  // 0 where nothing was measured
};

std::string text_of(const ConvolutionCall& call, const ConvolutionChoice& choice);

// Those for one GPU.
struct ConvolutionChoices {
  static ConvolutionChoices& of(int device);
  explicit ConvolutionChoices(int device);

  // What an earlier process has chosen. Its engine may not be at its place any more.
  std::optional<ConvolutionChoice> recall(const CallKey& key) const;
  void keep(const CallKey& key, const ConvolutionChoice& choice);

  Choices<CallKey, ConvolutionChoice> made;
  MemoFile file;
};

}  // namespace tandem::cuda
