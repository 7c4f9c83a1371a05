// Remembers how convolution calls are computed: in memory for all workers of this process, and in a
// file for later processes.
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
  dnn::EnginePlace place;  // unused if the form is unrolled
  std::string engine;
  float milliseconds = 0;  // 0: not measured
};

std::string text_of(const ConvolutionCall& call, const ConvolutionChoice& choice);

// The choices for one GPU.
struct ConvolutionChoices {
  static ConvolutionChoices& of(int device);
  explicit ConvolutionChoices(int device);

  // The choice of an earlier process. Its engine may no longer be at the same place.
  std::optional<ConvolutionChoice> recall(const CallKey& key) const;
  void keep(const CallKey& key, const ConvolutionChoice& choice);

  Choices<CallKey, ConvolutionChoice> made;
  MemoFile file;
};

}  // namespace tandem::cuda
