// Phantom memory has addresses, but no content. A simulation gives it to tensors and messages, so
// that it can have more ranks than the machine has memory. Reading or writing it is a crash.
#pragma once

#include <cstddef>

namespace tandem {

// Throws OutOfMemory when no addresses are left. There are terabytes of them.
void* new_phantom(std::size_t bytes);
void delete_phantom(void* memory);

bool is_phantom(const void* address);

}  // namespace tandem
