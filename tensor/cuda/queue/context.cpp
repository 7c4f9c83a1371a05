#include "tensor/cuda/queue/context.h"

namespace tandem::cuda {

Context::Context(int index, Precision how_precise, bool is_deterministic)
    : device(index), precision(how_precise), deterministic(is_deterministic) {
  make_current();
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  check(cublasLtCreate(&blas), "starting cuBLAS");
  check(cudnnCreate(&dnn), "starting cuDNN");
  check(cudnnSetStream(dnn, stream), "giving cuDNN its stream");
  check(cudaMalloc(&workspace, kWorkspaceBytes), "allocating memory for cuBLAS and cuDNN");
  check(cudaMalloc(&queue.scratch, kScratchBytes), "allocating memory for sums");
  check(cudaMemsetAsync(queue.scratch, 0, kCounters * sizeof(int), stream), "zeroing counters");
  check(cudaMalloc(&step_key, sizeof *step_key), "allocating memory for a random key");
  queue.stream = stream;
  check(cudaDeviceGetAttribute(&queue.multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "querying the number of multiprocessors");
}

void Context::refuse_while_recording(const std::string& what) const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "querying whether a step is being recorded");
  if (status != cudaStreamCaptureStatusNone)
    throw SystemError(
        "a step is being recorded before its first run: no algorithm has been chosen for {}", what);
}

// Ignores failures: nothing can be done about them here.
Context::~Context() {
  cudaSetDevice(device);
  cudaStreamSynchronize(stream);
  cudaFree(step_key);
  cudaFree(queue.scratch);
  cudaFree(workspace);
  cudnnDestroy(dnn);
  cublasLtDestroy(blas);
  cudaStreamDestroy(stream);
}

}  // namespace tandem::cuda
