# Tandem. `make help` lists the targets.
#
#   DEBUG=1                  no optimisation, debugging symbols            -> build/debug
#   SAN=address,undefined    sanitizers: address, undefined, thread        -> build/san-…
#   CUDA=0|1                 with the CUDA backend; default 1 if nvcc and a GPU are found, 0 with SAN
#   CUDA_ARCH=80,90          GPU architectures to build for; newer GPUs compile the last one at startup
#   WERROR=1                 warnings are errors
#   PCH=0|1                  compile common headers once; default 1 with g++
#   ARCH=…                   -march on x86-64 (default native), -mcpu elsewhere (default none)
#   CXX=clang++              g++ 12 or newer, clang 14 or newer
#   MPI=0|1                  with MPI; default 1 if it is found, 0 with SAN=thread
#   BOOST=0|1                with fibers of Boost.Context, to simulate; default 1 if it is found
#   MPICXX=mpicxx            which MPI: MPICH's if it is found (mpicxx.mpich), otherwise mpicxx
#   PREFIX=/usr/local        where `make install` copies to; DESTDIR=… is put in front of it
#   CPPFLAGS= LDFLAGS=       -I… and -L… of libraries that are not on the compiler's search path

SHELL := /bin/bash
VERSION := 0.2.0-dev
PREFIX ?= /usr/local
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)  # all cores, unless -j is given
MAKEFLAGS += -j$(shell nproc)
endif

# ---- where things go -----------------------------------------------------------------------------
comma := ,
san_list := $(subst $(comma), ,$(SAN))
ifneq ($(filter-out address undefined thread,$(san_list)),)
$(error SAN=$(SAN): choose from address, undefined, thread, separated by commas)
endif
ifneq ($(filter-out 0 1,$(DEBUG) $(CUDA) $(MPI) $(BOOST) $(WERROR) $(PCH) $(GROUPED)),)
$(error DEBUG, CUDA, MPI, BOOST, WERROR, PCH and GROUPED take 0 or 1)
endif
DEBUG ?= 0
WERROR ?= 0
PCH ?= $(if $(findstring clang,$(shell $(CXX) --version 2>/dev/null)),0,1)
variant := $(if $(filter 1,$(DEBUG)),/debug)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
BUILD := build$(variant)

# ---- what is found -------------------------------------------------------------------------------
machine := $(shell uname -m)
nvcc := $(shell command -v nvcc)
# The CUDA backend takes most of a build's time, so by default it is built only if there is a GPU.
# The host's sanitizers do not work with the CUDA driver; `make check-gpu` uses NVIDIA's.
ifeq ($(origin CUDA),undefined)
gpu := $(if $(nvcc),$(or $(wildcard /dev/nvidia[0-9]*),$(shell nvidia-smi -L 2>/dev/null | grep '^GPU')))
CUDA := $(if $(SAN),0,$(if $(gpu),1,0))
no_cuda := $(if $(SAN),SAN leaves it out,$(if $(nvcc),no GPU here; CUDA=1 builds it,nvcc is not on the PATH))
else
no_cuda := CUDA=0
endif
ARCH ?= $(if $(filter x86_64,$(machine)),native)
ifeq ($(CUDA)$(nvcc),1)
$(error CUDA=1, but nvcc is not on the PATH)
endif
ifeq ($(CUDA),1)
CUDA_ARCH ?= 80,90
cuda_archs := $(subst $(comma), ,$(CUDA_ARCH))
cuda_home := $(patsubst %/bin/,%,$(dir $(realpath $(nvcc))))
cuda_lib := $(firstword $(wildcard $(cuda_home)/lib64 $(cuda_home)/lib))
cuda_cpp_flags := -isystem $(cuda_home)/include
cuda_ld_flags := -L$(cuda_lib) -Wl,-rpath,$(cuda_lib) -lcublasLt -lcublas -lcudnn -lcudart
nvcc_flags := -std=c++20 -O3 $(if $(filter 1,$(DEBUG)),-lineinfo) -Xcompiler -Wall,-Wextra \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
  $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(cuda_archs)),code=compute_$(lastword $(cuda_archs)) $(NVCCFLAGS)
endif
arch_flag := $(if $(ARCH),$(if $(filter x86_64,$(machine)),-march=,-mcpu=)$(ARCH))

MPICXX ?= $(if $(shell command -v mpicxx.mpich),mpicxx.mpich,mpicxx)
# The thread sanitizer does not work with UCX, which MPICH uses.
MPI ?= $(if $(filter thread,$(san_list)),0,$(if $(shell command -v $(MPICXX)),1,0))
ifeq ($(MPI),1)
mpi_show := $(shell $(MPICXX) -show 2>/dev/null)
mpi_cpp_flags := $(filter -I%,$(mpi_show)) -DMPICH_SKIP_MPICXX -DOMPI_SKIP_MPICXX
# mpiexec.mpich for mpicxx.mpich, and so on. Open MPI needs these options for the tests.
MPIEXEC ?= $(subst mpicxx,mpiexec,$(MPICXX))$(if $(filter -lmpi,$(mpi_show)), \
  --allow-run-as-root --oversubscribe)
mpi_ld_flags := $(filter-out -lmpichcxx -lmpi_cxx,$(filter -L% -l% -Wl$(comma)-rpath%,$(mpi_show)))
endif

# Some machines have the header but not the library.
uses_boost := printf '\043if !__has_include(<boost/context/fiber.hpp>)\n\043error\n\043endif\nint main() {}\n'
ifeq ($(origin BOOST),undefined)
BOOST := $(shell $(uses_boost) | $(CXX) $(CPPFLAGS) -x c++ - $(LDFLAGS) -lboost_context -o /dev/null 2>/dev/null && echo 1 || echo 0)
endif

for_g++ = $(if $(findstring clang,$(CXX)),,$(1))
cpp_flags := -I. -MMD -MP $(CPPFLAGS)
warnings := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers \
  -Wno-stringop-overflow -Wno-unknown-warning-option $(if $(filter 1,$(WERROR)),-Werror)
cxx_flags := -std=c++20 -pthread $(arch_flag) $(if $(SAN),-w,$(warnings)) \
  $(if $(filter 1,$(DEBUG)),-O0 -g,$(if $(SAN),-O1,-O3)) \
  -fno-math-errno -fno-trapping-math \
  -ffp-contract=off \
  $(call for_g++,--param ggc-min-heapsize=524288) \
  $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all -g1) \
  $(if $(filter undefined,$(san_list)),-fno-sanitize=vptr $(if $(filter address,$(san_list)),-fno-sanitize=null)) \
  $(CXXFLAGS)
# -ffp-contract=off: our own arithmetic gives the same bits with every compiler and architecture.
# ggc-min-heapsize: g++ looks for memory to free less often, which saves 5% of the time.
# -Wno-stringop-overflow: g++ 12 warns about overflows in fmt that cannot happen, if it vectorises
# for AVX-512.
# -w: instrumented code misleads the compiler's flow analysis, so only builds without SAN warn.
# -fno-sanitize=…: without vptr, null and alignment, its checks of pointers, the undefined-behaviour
# sanitizer takes two thirds of the time. vptr slows down every virtual call. The address sanitizer
# finds what is read or written through a null pointer.
# asan-instrumentation…: the address sanitizer's checks become calls, which compile 15% faster.
quick_flags := $(if $(filter 1,$(DEBUG)),,$(if $(SAN),-O0,-O1)) \
  $(if $(filter undefined,$(san_list)),-fno-sanitize=null$(comma)alignment) \
  $(if $(filter address,$(san_list)),$(call for_g++,--param asan-instrumentation-with-call-threshold=0))
loop_flags := $(if $(filter 1,$(DEBUG)),,-O2)
ld_flags := -pthread $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
ld_libs := $(LDLIBS) -lopenblas -lfmt -lz $(if $(filter 1,$(BOOST)),-lboost_context) $(mpi_ld_flags) $(cuda_ld_flags)

# ---- sources -------------------------------------------------------------------------------------
rooms := base tensor autograd layers data dist train speedup simulate
cuda_src := $(if $(filter 1,$(CUDA)),$(sort $(shell find tensor/cuda -name '*.cpp' -o -name '*.cu')))
cuda_src := $(filter-out tensor/cuda/stub.cpp,$(cuda_src))
mpi_src := dist/transport/mpi_$(if $(filter 1,$(MPI)),transport,stub).cpp
unused := $(if $(filter 1,$(BOOST)),base/virtual_time_stub.cpp,base/virtual_time.cpp)
lib_src := $(filter-out tensor/cuda/% data/tools/% dist/transport/mpi_transport.cpp dist/transport/mpi_stub.cpp $(unused),$(shell find $(rooms) -name '*.cpp' | sort)) \
  $(mpi_src) $(if $(cuda_src),$(cuda_src),tensor/cuda/stub.cpp)
# Only the plain build tests the documents' commands and this file's targets.
test_src := $(shell find tests -name '*.cpp' -not -path 'tests/cuda/*' -not -path 'tests/faults/*' -not -path 'tests/fuzz/fuzzer.cpp' $(if $(variant),-not -path 'tests/docs/*' -not -path 'tests/make/*') | sort)
cuda_test_src := $(if $(cuda_src),$(sort $(wildcard tests/cuda/*.cpp)))
nets := mnist_mlp cifar_cnn cifar_convex alexnet resnet vgg googlenet inception
apps := $(patsubst apps/%/main.cpp,%,$(wildcard apps/*/main.cpp))
object = $(patsubst %,$(BUILD)/obj/%.o,$(basename $(1)))
programs := $(addprefix $(BUILD)/,$(apps))
# If GROUPED, eight files of test cases are compiled at a time, which takes 60% of the time, and half
# with sanitizers. Each is in a namespace of its own, behind the headers of all eight. Without, it is
# faster to change one test and run it, and a header that a file forgot is noticed.
# With sanitizers, so are eight files of the rooms with the most files. They share their anonymous
# namespaces, so names in these must differ within such a room.
GROUPED ?= $(if $(SAN),1,0)
grouped_tests := $(if $(filter 1,$(GROUPED)),$(filter %_test.cpp,$(test_src)))
grouped_rooms := $(if $(SAN),$(if $(filter 1,$(GROUPED)),dist train speedup simulate))
has_own_flags := dist/compress/% dist/codecs/levels.cpp dist/transport/mpi% train/version.cpp
sources_of = $(if $(filter tests,$(1)),$(grouped_tests),$(filter-out $(has_own_flags),$(filter $(1)/%,$(lib_src))))
groups_of = $(foreach first,$(shell seq 1 8 $(words $(sources_of))),$(BUILD)/grouped/$(1)/$(first))
test_groups := $(call groups_of,tests)
lib_groups := $(foreach room,$(grouped_rooms),$(call groups_of,$(room)))
groups := $(test_groups) $(lib_groups)
test_objects := $(addsuffix .o,$(test_groups)) $(call object,$(filter-out $(grouped_tests),$(test_src)))
lib_objects := $(addsuffix .o,$(lib_groups)) \
  $(call object,$(filter-out $(foreach room,$(grouped_rooms),$(call sources_of,$(room))),$(lib_src)))
objects := $(test_objects) $(lib_objects) $(call object,$(cuda_test_src) $(wildcard data/tools/*.cpp apps/*/*.cpp) tests/fuzz/fuzzer.cpp)

# What does no mathematics is compiled quickly rather than for speed. An inline function that both
# kinds of files use may be linked as compiled here, so one that must be fast belongs in a .cpp.
quick := $(foreach folder,autograd/ops layers/models train speedup apps tests,$(BUILD)/obj/$(folder)/%.o $(BUILD)/grouped/$(folder)/%.o)

# ---- building ------------------------------------------------------------------------------------
.PHONY: all tests tests-gpu detected
all: $(programs)
# Other variants skip the benchmarks that no test runs.
untested := $(if $(variant),bench_compress bench_kernels bench_link)
tests: $(BUILD)/tandem_tests $(BUILD)/tandem.pc $(filter-out $(addprefix $(BUILD)/,$(untested)),$(programs)) $(BUILD)/cifar_from_png $(if $(cuda_test_src),$(BUILD)/cuda_tests)
tests-gpu: $(addprefix $(BUILD)/,cuda_tests $(nets))

$(programs): $(BUILD)/%: $(BUILD)/obj/apps/%/main.o $(BUILD)/libtandem.a $(BUILD)/link_flags | results
	$(link)
# The other sources of programs that have several.
$(foreach app,$(apps),$(eval $(BUILD)/$(app): $(call object,$(filter-out %/main.cpp,$(wildcard apps/$(app)/*.cpp)))))
# Commands of README and docs/ write to results/.
results:
	@mkdir -p $@
$(BUILD)/bench_kernels: private ld_libs += -lbenchmark
$(BUILD)/tandem_tests: $(test_objects) $(BUILD)/libtandem.a $(BUILD)/sources $(BUILD)/link_flags
	$(link)
# Needs a GPU to run, but is built with every CUDA build.
$(BUILD)/cuda_tests: $(call object,$(cuda_test_src) tests/json.cpp tests/main.cpp tests/support.cpp) $(BUILD)/libtandem.a $(BUILD)/sources $(BUILD)/link_flags
	$(link)
# data/fetch builds this program when it needs it. It has few sources, so that this takes seconds.
$(BUILD)/cifar_from_png: $(call object,data/tools/cifar_from_png.cpp data/decode_image.cpp data/jpeg_check.cpp data/png_check.cpp) $(BUILD)/link_flags
	$(link)
define link
	@echo "  link  $@"
	@$(CXX) $(ld_flags) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(ld_libs)
endef

$(BUILD)/libtandem.a: $(lib_objects) $(BUILD)/sources
	@echo "  ar    $@"
	@rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# For pkg-config. The library is static, so its users also link what it depends on.
define pkg_config
prefix=@PREFIX@
includedir=$${prefix}/include
libdir=$${prefix}/lib

Name: tandem
Description: Deep learning with data-parallel distribution built in
Version: $(VERSION)
Cflags: -I$${includedir}/tandem -pthread $(CPPFLAGS)
Libs: -L$${libdir} -ltandem $(ld_flags) $(ld_libs)
endef
$(BUILD)/tandem.pc: $(BUILD)/link_flags $(BUILD)/flags Makefile
	$(file >$@,$(pkg_config))

# Headers compiled once (base/precompiled.h), for each of the two ways to optimise, and for tests.
ifeq ($(PCH),1)
precompiled := $(foreach way,fast quick tests,$(BUILD)/precompiled/$(way)/precompiled.h.gch)
with_headers = -fpch-preprocess -include $(BUILD)/precompiled/$(1)/precompiled.h
pch = $(call with_headers,fast)
$(quick): private pch = $(call with_headers,quick)
$(BUILD)/obj/tests/%.o $(test_groups:=.o): private pch = $(call with_headers,tests)
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
endif
define compile
	@mkdir -p $(@D)
	@echo "  c++   $<"
	@$(CXX) $(cpp_flags) $(cxx_flags) $(pch) -c -o $@ $<
endef
$(BUILD)/obj/%.o: %.cpp $(BUILD)/flags | detected $(precompiled)
	$(compile)
$(groups:=.o): %.o: %.cpp $(BUILD)/flags | detected $(precompiled)
	$(compile)
$(foreach kind,tests $(grouped_rooms),$(foreach group,$(call groups_of,$(kind)),\
  $(eval $(group).cpp: $(wordlist $(notdir $(group)),$(shell expr $(notdir $(group)) + 7),$(call sources_of,$(kind))))))
$(test_groups:=.cpp): $(BUILD)/sources Makefile
	@mkdir -p $(@D)
	@{ grep -h '^#include' $(filter tests/%,$^) | sort -u; \
	   for source in $(filter tests/%,$^); do \
	     printf 'namespace %s {\n#include "%s"\n}\n' $${source//[\/.]/_} $$source; done; } >$@
$(lib_groups:=.cpp): $(BUILD)/sources Makefile
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(filter %.cpp,$^) >$@
define precompile
	@mkdir -p $(@D)
	@echo "  c++   $< ($(notdir $(@D)))"
	@cp $< $(@:.gch=)
	@$(CXX) $(filter-out -MMD,$(cpp_flags)) $(cxx_flags) -MD -MF $(@:.h.gch=.d) -MT $@ -x c++-header -o $@ $<
endef
$(filter-out %/tests/precompiled.h.gch,$(precompiled)): base/precompiled.h $(BUILD)/flags | detected
	$(precompile)
$(filter %/tests/precompiled.h.gch,$(precompiled)): tests/precompiled.h $(BUILD)/flags | detected
	$(precompile)
$(filter-out %/fast/precompiled.h.gch,$(precompiled)): private cxx_flags += $(quick_flags)
# nvcc compiles only the kernels, which include no other part of Tandem. Host code is ordinary C++.
$(BUILD)/obj/%.o: %.cu $(BUILD)/nvcc_flags | detected
	@mkdir -p $(@D)
	@echo "  nvcc  $<"
	@nvcc $(nvcc_flags) -I. -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $<
$(BUILD)/obj/tensor/cuda/%.o $(BUILD)/obj/tests/cuda/%.o: private cpp_flags += $(cuda_cpp_flags)
# The inner loop of convolutions. With sanitizers it is fast enough only if its sums stay in
# registers: optimised, and without checks of stack variables. g++ forgets these options if it reads
# headers that were compiled without them.
$(BUILD)/obj/tensor/cpu/panels.o: private cxx_flags += -ffp-contract=fast \
  $(if $(SAN),-O3 $(call for_g++,--param asan-stack=0))
$(BUILD)/obj/tensor/cpu/panels.o: private pch =
ifneq ($(SAN),)
# Loops over all elements, where the tests of all algorithms spend their time.
loops := $(addprefix $(BUILD)/obj/,dist/compress/%.o dist/codecs/levels.o tensor/cpu/elementwise.o)
$(loops): private cxx_flags += $(loop_flags)
$(loops): private pch =
endif
# stb_image computes with the numbers of damaged files, which overflow.
$(BUILD)/obj/data/decode_image.o: private cxx_flags += -fwrapv
$(BUILD)/obj/data/decode_image.o: private pch =
$(quick): private cxx_flags += $(quick_flags)
$(BUILD)/obj/dist/transport/mpi_transport.o: private cpp_flags += $(mpi_cpp_flags)
$(test_groups:=.o) $(addprefix $(BUILD)/obj/tests/,apps/mpi_test.o apps/mpi_failures_test.o apps/interruption_test.o docs/commands_test.o): private cpp_flags += -DTANDEM_MPIEXEC='"$(MPIEXEC)"'

# Only one file knows the commit, so that a new commit does not rebuild everything.
$(BUILD)/obj/train/version.o: $(BUILD)/commit Makefile
$(BUILD)/obj/train/version.o: private cpp_flags += -DTANDEM_VERSION='"$(VERSION)"' \
  -DTANDEM_COMMIT="\"$$(cat $(BUILD)/commit)\""

$(test_groups:=.o) $(BUILD)/obj/tests/make/install_test.o: private cpp_flags += -DTANDEM_CXX='"$(CXX)"'

# Objects are rebuilt when the compiler or its flags change; libraries and programs when a source is
# added or removed.
define remember
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2>/dev/null)" = '$(1)' ] || echo '$(1)' >$@
endef
.PHONY: force
$(BUILD)/flags: force
	$(call remember,$(CXX) $(cpp_flags) $(cxx_flags) $(quick_flags) $(loop_flags))
$(BUILD)/nvcc_flags: force
	$(call remember,$(nvcc_flags))
$(BUILD)/link_flags: force
	$(call remember,$(CXX) $(ld_flags) $(ld_libs))
$(BUILD)/commit: force
	@mkdir -p $(@D)
	@commit=$$(scripts/detect commit); [ -e $@ ] && [ "$$(cat $@)" = "$$commit" ] || echo "$$commit" >$@
$(BUILD)/sources: force
	$(call remember,$(lib_src) $(test_src) $(cuda_test_src))

detected: | have-deps
	@echo "tandem: $$($(CXX) -dumpfullversion -dumpversion | head -1 | sed 's|^|$(notdir $(CXX)) |')" \
	  "on $(machine), $$(CXX="$(CXX)" CPPFLAGS="$(CPPFLAGS)" scripts/detect blas), $(if $(filter 1,$(MPI)),$$(scripts/detect mpi $(MPICXX)),no MPI)," \
	  "$(if $(cuda_src),$$(scripts/detect cuda) for sm_$(subst $(comma),$(comma) sm_,$(CUDA_ARCH)),CUDA left out: $(no_cuda)) -> $(BUILD)/"

# MPI is required unless MPI=0 was given.
deps = CXX="$(CXX)" CPPFLAGS="$(CPPFLAGS)" MPI=$(if $(filter command environment,$(origin MPI)),$(MPI),1) scripts/deps
.PHONY: have-deps
have-deps:
	@$(deps) --check
ifeq ($(CUDA),1)
	@echo '#include <cudnn.h>' | nvcc -E -x cu - >/dev/null 2>&1 || \
	  { echo "there is nvcc but not cuDNN (cudnn.h): install it, or build with CUDA=0" >&2; exit 2; }
endif

-include $(objects:.o=.d) $(precompiled:.h.gch=.d)

# ---- for people ----------------------------------------------------------------------------------
.PHONY: deps demo check test bench data format format-check clean help
deps:
	@$(deps)

# Installs libraries, builds, gets the data, trains with every algorithm, and compares.
demo: deps
	@$(MAKE) --no-print-directory $(BUILD)/mnist_mlp $(BUILD)/speedup
	@scripts/demo $(BUILD)

# The paper's tables, each with figures and a report, and the table of all codecs, into results/.
.PHONY: tables
tables: deps
	@$(MAKE) --no-print-directory $(addprefix $(BUILD)/,speedup mnist_mlp cifar_convex)
	@scripts/tables $(BUILD)
	@scripts/tables-codecs $(BUILD)

# The figures of the papers, simulated, with the papers' numbers in them.
.PHONY: figures
figures: $(BUILD)/paper_figures
	@$(BUILD)/paper_figures --paper mg-wfbp,p3,pipe-sgd --out docs/results/papers
	@$(BUILD)/paper_figures --paper ko --out docs/results/async

# Installs libraries, builds, and tests; then again with the address and undefined-behaviour
# sanitizers. With SAN=…, only with those.
check: deps
	+@scripts/check $(if $(SAN),"SAN=$(SAN)","" "SAN=address,undefined CUDA=0")

# Only the tests, in one variant.
test: tests
	@$(BUILD)/tandem_tests
.PHONY: where
where:
	@echo $(BUILD)

# Checks that nothing is lost when ranks are killed or disks fail. PARTS chooses some of the checks.
.PHONY: check-faults
$(BUILD)/inject.so: tests/faults/inject.cpp
	@echo "  link  $@"
	@$(CXX) -std=c++20 -O2 -Wall -Wextra -Werror -shared -fPIC $< -o $@ -ldl
check-faults: $(BUILD)/mnist_mlp $(BUILD)/inject.so
	@scripts/check-faults $(BUILD) "$(MPIEXEC)" $(PARTS)

# Gives random input to all readers of foreign bytes, with clang's libFuzzer. READERS chooses some of them.
.PHONY: fuzz
fuzzed := SAN=address,undefined CUDA=0 MPI=0 BUILD=build/fuzz quick_flags= \
  CXX=$(if $(findstring clang,$(CXX)),$(CXX),clang++) \
  CXXFLAGS="-O2 -fsanitize=fuzzer-no-link,null -D_GLIBCXX_ASSERTIONS -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"
fuzz:
	@CXX= FUZZ=1 MPI=0 scripts/deps
	@$(MAKE) --no-print-directory $(fuzzed) build/fuzz/fuzzer
	@scripts/fuzz build/fuzz $(READERS)
build/fuzz/fuzzer: $(call object,tests/fuzz/fuzzer.cpp tests/fuzz/readers.cpp) $(BUILD)/libtandem.a $(BUILD)/link_flags
	@echo "  link  $@"
	@$(CXX) $(ld_flags) -fsanitize=fuzzer -o $@ $(filter %.o %.a,$^) $(ld_libs)

# Compares the emulated link with a real network made of network namespaces (needs root).
.PHONY: check-netns
check-netns: $(BUILD)/allreduce_bench
	@scripts/check-netns $(BUILD)

bench: $(addprefix $(BUILD)/,$(filter bench_% %_bench,$(apps)))
	@scripts/bench $(BUILD) $(if $(filter 1,$(MPI)),"$(MPIEXEC)")

# Times the algorithms that communicate during backward, on emulated links.
.PHONY: bench-overlap
bench-overlap: $(addprefix $(BUILD)/,$(nets))
	@scripts/bench-overlap $(BUILD)

# Times how long a run needs to go on after a rank was killed.
.PHONY: bench-restart
bench-restart: $(BUILD)/mnist_mlp $(BUILD)/resnet
	@scripts/bench-restart $(BUILD) "$(MPIEXEC)"

# Times P3 compared with the baseline of its paper, and with slices of different sizes.
.PHONY: bench-simulate
bench-simulate: $(addprefix $(BUILD)/,mnist_mlp resnet simulate)
	@scripts/bench-simulate $(BUILD) $(RANKS)

.PHONY: bench-p3
bench-p3: $(addprefix $(BUILD)/,resnet vgg)
	@scripts/bench-p3 $(BUILD)

# Times four workers on a shaped network, compared with PyTorch's DDP (needs root).
.PHONY: bench-peers
bench-peers: $(BUILD)/mnist_mlp $(BUILD)/cifar_cnn
	@scripts/bench-peers $(BUILD)
	@scripts/bench-peers $(BUILD) 100mbit cifar_cnn

# The final accuracy of all algorithms of Ko et al.: on a CPU in minutes, or DEVICE=cuda.
.PHONY: tables-async
tables-async: $(addprefix $(BUILD)/,mnist_mlp resnet)
	@scripts/tables-async $(BUILD) $(DEVICE)

# The final accuracy, the bytes and the times of all codecs, in the same way.
.PHONY: tables-codecs
tables-codecs: $(addprefix $(BUILD)/,mnist_mlp resnet)
	@scripts/tables-codecs $(BUILD) $(DEVICE)

# Targets that need a GPU: the tests, some of them also under NVIDIA's sanitizer; the tables of all
# benchmarks; a training step; four workers on one GPU compared with PyTorch's DDP.
.PHONY: check-gpu tables-gpu bench-gpu bench-peers-gpu
ifeq ($(CUDA),1)
check-gpu: deps
	+@scripts/check-gpu
tables-gpu: deps
	@$(MAKE) --no-print-directory $(addprefix $(BUILD)/,speedup $(nets))
	@scripts/tables $(BUILD) cuda
bench-gpu: $(BUILD)/bench_step
	@scripts/bench-gpu $(BUILD)
bench-peers-gpu: $(addprefix $(BUILD)/,mnist_mlp alexnet resnet)
	@scripts/bench-peers-gpu $(BUILD)
else
check-gpu tables-gpu bench-gpu bench-peers-gpu:
	@echo "$@: this build has no CUDA backend ($(no_cuda))" >&2; exit 2
endif

data:
	+@data/fetch

# The nets that simulations know, as tables. A test compares them with the models.
.PHONY: profiles
profiles: $(BUILD)/net_tables
	@$(BUILD)/net_tables --out profiles

# Programs, headers, the library and its pkg-config file, for other programs to use.
.PHONY: install uninstall
install: all $(BUILD)/tandem.pc
	@DESTDIR="$(DESTDIR)" scripts/install $(BUILD) "$(abspath $(PREFIX))"
uninstall:
	@DESTDIR="$(DESTDIR)" scripts/install --remove $(BUILD) "$(abspath $(PREFIX))"

cxx_files = $(shell find $(rooms) apps examples tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')
have_clang_format = command -v clang-format >/dev/null || { echo "clang-format is not installed" >&2; exit 2; }
format:
	@$(have_clang_format); clang-format -i $(cxx_files)
format-check:
	@$(have_clang_format); clang-format --dry-run -Werror $(cxx_files)

clean:
	rm -rf build

help:
	@echo "Times are for a first build on two cores without CUDA. Later builds are faster."
	@echo
	@echo "make              build all programs in build/ (about 4 minutes)"
	@echo "make demo         install libraries, build, get data, train with each algorithm, compare (about 7 minutes)"
	@echo "make tables       make the speedup tables of MNIST-MLP and CIFAR-Convex, with figures and reports,"
	@echo "                  and the table of all codecs, in results/ (about 25 minutes); make tables-gpu: all benchmarks, on a GPU"
	@echo "make figures      simulate the figures of the papers, into docs/results/ (about 20 minutes)"
	@echo "make check        install libraries, build and run all tests, also with sanitizers (about 25 minutes on two cores)"
	@echo "make test         build and run the tests in one variant (SAN=thread, DEBUG=1, …)"
	@echo "make check-faults kill ranks and let disks fail; nothing may be lost (about 20 minutes)"
	@echo "make fuzz         give random input to all readers of files and options (clang; a minute per reader, two or more at a time)"
	@echo "make check-gpu    build and run the tests that need a GPU, also under compute-sanitizer"
	@echo "make check-netns  compare the emulated link with shaped network namespaces (needs root)"
	@echo "make bench        time kernels, compressors, links, all-reduce (compared with MPI's) and a training step"
	@echo "                  (compared with PyTorch's, if it is installed; about 15 minutes)"
	@echo "make bench-gpu    time a training step of every model on a GPU, compared with PyTorch's"
	@echo "make bench-overlap  time the algorithms that communicate during backward (about an hour)"
	@echo "make bench-simulate  compare simulations with the runs that they were made from (ten minutes; RANKS=netns: over MPICH, needs root)"
	@echo "make bench-p3     time P3, compared with the baseline of its paper (about half an hour)"
	@echo "make bench-restart  time from kill -9 of a rank to the next iteration, under scripts/supervise"
	@echo "make bench-peers  time four workers on shaped network namespaces, compared with PyTorch's DDP over gloo (needs root)"
	@echo "make bench-peers-gpu  time four workers on one GPU, compared with PyTorch's DDP over gloo"
	@echo "make data         fetch MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100 into datasets/"
	@echo "make tables-async  train with all algorithms of Ko et al. (minutes; with DEVICE=cuda and DATA=DIR: ResNet-20 on a GPU)"
	@echo "make tables-codecs  train with all codecs, and time them over 1 and 10 Gbit/s (ten minutes; DEVICE and DATA as above)"
	@echo "make profiles     write the nets that simulations know, as tables, into profiles/"
	@echo "make deps         install missing libraries with apt"
	@echo "make install      copy programs, headers, library and tandem.pc to PREFIX=/usr/local; make uninstall removes them"
	@echo "make format       format the sources; make format-check only checks"
	@echo "make clean        remove build/"
	@echo
	@sed -n 's/^# *\(.*=.*\)/  \1/p' Makefile | head -13
