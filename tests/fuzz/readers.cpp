#include "tests/fuzz/readers.h"

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "data/cifar.h"
#include "data/decode_image.h"
#include "data/mnist.h"
#include "dist/schedule/merge.h"
#include "dist/transport/link_speed.h"
#include "simulate/net_table.h"
#include "speedup/report.h"
#include "speedup/results_file.h"
#include "speedup/table.h"
#include "tensor/memo_file.h"
#include "tensor/state.h"
#include "train/checkpoint.h"
#include "train/option_table.h"
#include "train/options.h"
#include "train/plan_file.h"
#include "train/profile_file.h"
#include "train/safetensors.h"
#include "train/summary.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

// A file in memory, because most readers want a path. There is only one: the next call replaces its
// contents.
const std::string& file_with(const std::string& bytes) {
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = fmt::format("/proc/self/fd/{}", file);
  require(file >= 0 && ::ftruncate(file, 0) == 0 &&
              ::pwrite(file, bytes.data(), bytes.size(), 0) == std::ssize(bytes),
          "a file in memory could not be written");
  return path;
}

// A folder in which every file has these bytes.
const fs::path& folder_with(const std::string& bytes, std::initializer_list<const char*> names) {
  struct Folder {
    Folder() {
      char name[] = "/tmp/tandem-fuzz-XXXXXX";
      require(::mkdtemp(name) != nullptr, "a folder could not be made");
      path = name;
    }
    ~Folder() { fs::remove_all(path); }
    fs::path path;
  };
  static const Folder folder;
  const std::string& file = file_with(bytes);
  for (const char* name : names)
    if (const fs::path link = folder.path / name; !fs::is_symlink(link))
      fs::create_symlink(file, link);
  return folder.path;
}

// Images have three sizes, labels one.
void read_images_or_labels(const std::string& bytes) {
  const std::string& path = file_with(bytes);
  try {
    read_idx(path, 3);
  } catch (const UserError&) {
    read_idx(path, 1);
  }
}

// The first byte says how many bytes the compressed file lacks at its end.
void read_compressed_idx(const std::string& bytes) {
  if (bytes.empty()) throw UserError("it is empty");
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  require(deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string contents = bytes.substr(1);
  std::string packed(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(contents.data());
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  packed.resize(stream.total_out - std::min<std::size_t>(stream.total_out, bytes[0] & 0x1f));
  deflateEnd(&stream);
  read_images_or_labels(packed);
}

void read_image(const std::string& bytes) {
  constexpr std::int64_t kPixels = 1 << 20;
  decode_image(file_with(bytes), kPixels);
}

// Corrects the checksums first. Otherwise nearly every changed input would be refused for them.
void read_png(const std::string& bytes) {
  constexpr std::size_t kSignature = 8, kFrame = 12;  // length, name and checksum of a chunk
  std::string file = bytes;
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(file[at]); };
  for (std::size_t at = kSignature; at + kFrame <= file.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | byte(at + i);
    if (length > file.size() - at - kFrame) break;
    const auto* name = reinterpret_cast<const Bytef*>(file.data() + at + 4);
    const auto sum = crc32(0, name, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += length + kFrame;
  }
  read_image(file);
}

void read_weights(const std::string& bytes) {
  const std::string& path = file_with(bytes);
  read_raw_safetensors(path, [](const RawArray&) {});
  read_safetensors(path);
}

// A rank's part of a checkpoint whose manifest has the right hash.
void read_checkpoint(const std::string& bytes) {
  struct Part {
    void visit(State& state) {
      state("weights", weights);
      state("iteration", iteration);
      state("seconds", seconds);
      state("losses", losses);
      plan.visit(state);
      summary.visit(state);
    }
    Tensor weights = Tensor::zeros({2, 3}, Dtype::f32, cpu_device(1));
    std::int64_t iteration = 0;
    double seconds = 0;
    std::vector<double> losses;
    MergePlan plan;
    Summary summary;
  };
  Snapshot saved = read_state(file_with(bytes));
  Part part;
  saved.load(part);
  saved.require_all_loaded();
}

TrainOptions options_of_plans(const std::string& path) {
  TrainOptions o;
  o.algo = "merge";
  o.workers = 4;
  o.batch = 20;
  o.threads = 1;
  o.link = "1gbe";
  o.ranks_per_node = 1;
  o.plan = path;
  return o;
}

void read_merge_plan(const std::string& bytes) {
  const TrainOptions o = options_of_plans(file_with(bytes));
  to_json(read_plan(o), o);
}

void read_comparison(const std::string& bytes) {
  const Results results = read_results(file_with(bytes));
  to_json(results);
  to_text(results);
  to_markdown(results);
  to_csv(results);
  report_html(results, "/nowhere");
}

// The value of an option. An option that accepts it may change it to its plain form, and must
// accept that, too.
void read_value(const std::string& bytes) {
  bool accepted = false;
  for (const OptionRow& row : option_table()) {
    if (!row.rule) continue;
    std::string text = bytes;
    if (!row.rule->complaint(text).empty()) continue;
    accepted = true;
    std::string again = text;
    require(row.rule->complaint(again).empty() && again == text, "{} does not accept {} again",
            row.name, text);
  }
  if (!accepted) throw UserError("no option accepts it");
}

bool prints(const std::string& word) {
  return word.starts_with("-h") || word.starts_with("--help") || word.starts_with("--version");
}

// A word per line.
void read_command_line(const std::string& bytes) {
  std::vector<std::string> words = {"fuzz"};
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line);)
    if (!prints(line)) words.push_back(line.c_str());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::int64_t depth = 18;
  std::string dataset = "imagenet";
  bool frozen = false;
  const AppHelp help{
      .about = "about",
      .data = "data",
      .own = {{.name = "--depth", .value = &depth, .value_name = "N", .help = "depth"},
              {.name = "--dataset",
               .value = &dataset,
               .value_name = "NAME",
               .help = "dataset",
               .choices = {"imagenet", "cifar10"}},
              {.name = "--frozen", .value = &frozen, .value_name = "", .help = "frozen"}}};
  TrainOptions o;
  parse_options(static_cast<int>(words.size()), pointers.data(), help, o);
}

// What is added to any file must be found again.
void read_memo(const std::string& bytes) {
  const std::string& path = file_with(bytes);
  std::string value = bytes;
  std::ranges::replace_if(
      value, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  MemoFile(path).add("key", value);
  require(MemoFile(path).find("key") == value, "what was added is not found");
}

}  // namespace

const std::vector<Reader>& all_readers() {
  static const std::vector<Reader> readers = {
      // A gzip file grows by a factor of up to 1032. Memory is allocated as its contents arrive.
      {"idx", read_images_or_labels, 4096, 8},
      {"idx-gzip", read_compressed_idx, 4096, 2},
      {"cifar",
       [](const std::string& bytes) {
         load_cifar(100, folder_with(bytes, {"train.bin", "test.bin", "fine_label_names.txt"}));
       },
       4 * 3074, 1},
      {"image", read_image, 4096, 64},  // 32 bytes of memory per pixel, and a million pixels
      {"png", read_png, 4096, 64},
      {"safetensors", read_weights, 4096, 1},
      {"checkpoint", read_checkpoint, 4096, 1},
      {"manifest", [](const std::string& bytes) { to_json(manifest_from(bytes)); }, 4096, 1},
      {"plan", read_merge_plan, 4096, 1},
      {"profile", [](const std::string& bytes) { to_text(read_profile(file_with(bytes))); }, 4096,
       1},
      {"net", [](const std::string& bytes) { to_text(read_net_table(file_with(bytes))); }, 4096, 1},
      {"results", read_comparison, 16384, 8},
      {"link", [](const std::string& bytes) { parse_link(bytes); }, 64, 1},
      {"value", read_value, 64, 1},
      {"options", read_command_line, 1024, 1},
      {"memo", read_memo, 1024, 1},
  };
  return readers;
}

}  // namespace tandem::test
