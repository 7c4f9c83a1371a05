// Headers that most tests include, compiled once (base/precompiled.h says how).
#include <doctest/doctest.h>

#include <filesystem>

#include "base/precompiled.h"
