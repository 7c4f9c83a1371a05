#include "train/safetensors.h"

#include <doctest/doctest.h>
#include <cmath>

#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "layers/models/models.h"
#include "tests/support.h"
#include "train/weights.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "file", bytes);
  const std::string message = message_of<UserError>([&] { read_safetensors(folder / "file"); });
  CHECK(message.starts_with((folder / "file").string()));
  return message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("safetensors: files are written and read in the documented layout") {
  const TemporaryFolder folder;
  const std::vector<NamedArray> arrays = {
      {"b", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"a", {}, {7}}, {"none", {0, 4}, {}}};
  write_safetensors(folder / "file", arrays);

  const std::string bytes = read_bytes(folder / "file");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(bytes.size() == 8 + length + 7 * 4);
  const std::string header = bytes.substr(8, length);
  CHECK(header.starts_with(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],)"
                           R"("data_offsets":[0,24]},"a":)"));

  const auto read = read_safetensors(folder / "file");
  CHECK(read.size() == 3);
  for (const NamedArray& array : arrays) {
    CHECK(read.at(array.name).shape == array.shape);
    CHECK(read.at(array.name).values == array.values);
  }
  // Only the file itself is left behind.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("safetensors: broken files are refused in one sentence that names the file") {
  const std::string entry = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string data(8, 'x');
  const TemporaryFolder folder;
  write_bytes(folder / "good", file_of(entry, data));
  CHECK(read_safetensors(folder / "good").size() == 1);

  CHECK(has(complaint(""), "too short"));
  CHECK(has(complaint("1234567"), "too short"));
  CHECK(has(complaint(file_of(entry, data).substr(0, 30)), "not a whole safetensors file"));
  CHECK(has(complaint(file_of(entry, data.substr(1))),
            "8 is not a whole number within the file's 7"));
  CHECK(has(complaint(file_of(entry, data + "x")), "has 9 bytes of data, but its tensors have 8"));
  CHECK(has(complaint(std::string(8, '\xff') + "junk"), "not a whole safetensors file"));
  CHECK(has(complaint(file_of("not json", data)), "it is not JSON"));
  CHECK(has(complaint(file_of("[1]", data)), "not a JSON object"));
  CHECK(has(complaint(file_of(R"({"a":3})", data)), "tensor a lacks"));
  CHECK(has(complaint(file_of(R"({"a":{"dtype":"F32","shape":[2]}})", data)), "tensor a lacks"));
  CHECK(has(complaint(file_of(R"({"a":{"dtype":"U16","shape":[2],"data_offsets":[0,4]}})", data)),
            "its dtype is U16; F32, F16, BF16 and F64 can be read"));
  const auto with = [&](const std::string& shape, const std::string& offsets) {
    return complaint(file_of(
        R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", data));
  };
  CHECK(has(with("[2]", "[8,0]"), "tensor a: bytes 8 to 0"));
  CHECK(has(with("[1]", "[4,8]"), "tensor a begins at byte 4 of the data, not at 0"));
  CHECK(has(with("[3]", "[0,8]"), "tensor a: bytes 0 to 8 do not hold the shape [3]"));
  CHECK(has(with("[-2]", "[0,8]"), "-2 is not a whole number"));
  CHECK(has(with("[2.0]", "[0,8]"), "2.0 is not a whole number"));
  CHECK(has(with("[4611686018427387904]", "[0,8]"), "is not a whole number within"));
  CHECK(has(with("[8,8,8,8,8,8,8]", "[0,8]"), "7 sizes"));
  CHECK(has(with("[2]", "[0]"), "lacks"));
  CHECK(has(with("[2]", "[-1,7]"), "-1 is not a whole number"));
  // Two tensors over the same bytes.
  CHECK(has(complaint(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                              data)),
            "tensor b begins at byte 0 of the data, not at 8"));
  CHECK(message_of<UserError>([] { read_safetensors("/dev/null"); }) ==
        "/dev/null is not a regular file");
}

TEST_CASE("safetensors: a header that is deep, long or has many names is refused quickly") {
  const auto shape = [](const std::string& value) {
    const std::string message = complaint(file_of(
        R"({"a":{"dtype":"F32","shape":[)" + value + R"(],"data_offsets":[0,8]}})", "12345678"));
    CHECK(message.size() < 500);
    return message;
  };
  constexpr std::size_t kDeep = 200'000;
  CHECK(has(shape(std::string(kDeep, '[') + std::string(kDeep, ']')), "nested more than 16 deep"));
  CHECK(has(shape(std::string(kDeep, '[')), "nested more than 16 deep"));
  CHECK(has(shape("[[1]]"), "an array is not a whole number"));
  CHECK(has(shape(R"({"b":1})"), "an object is not a whole number"));
  CHECK(has(shape(R"("[[[[[[[[[[[[[[[[[[[[\"[")"), R"("[[[[[[[[[[[[[[[[[[[["[" is not a whole)"));
  const std::string text(kDeep, 'x');
  CHECK(has(shape('"' + text + '"'), "xxx...\" is not a whole number"));
  CHECK(has(shape('"' + text), "it is not JSON"));
  const auto brief = [&](const std::string& name, const std::string& dtype) {
    const std::string message = complaint(file_of(
        R"({")" + name + R"(":{"dtype":")" + dtype + R"(","shape":[2],"data_offsets":[0,8]}})",
        "123"));
    CHECK(message.size() < 500);
    return message;
  };
  CHECK(has(brief(text, "F32"), "tensor xxx"));
  CHECK(has(brief("a", text), "xxx...; F32,"));
  CHECK(has(brief(R"(a\nb)", "F32"), "tensor a?b"));
  std::string names;
  for (int i = 0; i < 100'000; ++i) names += fmt::format(R"("{}":{{}},)", i);
  CHECK(has(complaint(file_of("{" + names + R"("a":1})", "")), "lacks a dtype"));
  CHECK(has(complaint(file_of(std::string(10'000'001, ' '), "")),
            "has a header of 10000001 bytes; 10000000 are the most"));
}

TEST_CASE("safetensors: F16, BF16 and F64 become float") {
  const TemporaryFolder folder;
  const auto read = [&](const char* dtype, const auto& bits) {
    const std::string data(reinterpret_cast<const char*>(bits.data()),
                           bits.size() * sizeof(bits[0]));
    write_bytes(
        folder / "file",
        file_of(fmt::format(R"({{"a":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype,
                            bits.size(), data.size()),
                data));
    return read_safetensors(folder / "file").at("a").values;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto half =
      read("F16", std::vector<std::uint16_t>{0x0000, 0x8000, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0400,
                                             0x03ff, 0x0001, 0x8001, 0x7c00, 0xfc00, 0x7e00});
  const std::vector<float> halves = {0,         -0.0f,     1,          -2,       0.333251953125f,
                                     65504,     0x1p-14f,  0x3ffp-24f, 0x1p-24f, -0x1p-24f,
                                     kInfinity, -kInfinity};
  CHECK(std::vector<float>(half.begin(), half.end() - 1) == halves);
  CHECK(std::signbit(half[1]));
  CHECK(std::isnan(half.back()));

  const auto bf16 = read("BF16", std::vector<std::uint16_t>{0x3f80, 0xc049, 0x0001, 0xff80});
  CHECK(bf16 == std::vector<float>{1, -3.140625f, 0x1p-133f, -kInfinity});

  const auto f64 = read("F64", std::vector<double>{0.1, -1e-300, FLT_MAX, -FLT_MAX, INFINITY});
  CHECK(f64 == std::vector<float>{0.1f, 0, FLT_MAX, -FLT_MAX, kInfinity});
  CHECK(message_of<UserError>([&] {
          read("F64", std::vector<double>{1, -1e39});
        }) ==
        (folder / "file").string() + ": tensor a: its value -1e+39 is beyond the range of F32");
}

TEST_CASE("safetensors: PyTorch's batch counters are ignored, other integers are not") {
  const TemporaryFolder folder;
  const auto header = [](const std::string& name) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},")" + name +
           R"(":{"dtype":"I64","shape":[],"data_offsets":[4,12]},)"
           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
  };
  const std::string data("\0\0\x80\x3f\7\0\0\0\0\0\0\0\0\0\0\x40", 16);
  write_bytes(folder / "good", file_of(header("bn1.num_batches_tracked"), data));
  const auto arrays = read_safetensors(folder / "good");
  REQUIRE(arrays.size() == 2);
  CHECK(arrays.at("a").values == std::vector<float>{1});
  CHECK(arrays.at("b").values == std::vector<float>{2});
  CHECK(has(complaint(file_of(header("labels"), data)), "its dtype is I64; F32, "));
}

TEST_CASE("weights: saved and loaded bit for bit; the hash shows differences") {
  const TemporaryFolder folder;
  const auto one = mnist_mlp(1), two = mnist_mlp(2);
  ParameterSet a(one->parameters(), cpu_device()), b(two->parameters(), cpu_device());
  CHECK(weights_hash(a) != weights_hash(b));
  save_weights(folder / "weights", a);
  load_weights(folder / "weights", b);
  CHECK(weights_hash(a) == weights_hash(b));
  // One bit is enough.
  auto* value = reinterpret_cast<std::uint32_t*>(b.all()[3]->value.data<float>() + 17);
  *value ^= 1;
  CHECK(weights_hash(a) != weights_hash(b));
}

TEST_CASE("weights: another model's file is refused, and nothing changes") {
  const TemporaryFolder folder;
  const auto model = mnist_mlp(1);
  ParameterSet set(model->parameters(), cpu_device());
  const std::string before = weights_hash(set);
  const auto complain = [&](std::vector<NamedArray> arrays) {
    write_safetensors(folder / "weights", arrays);
    return message_of<UserError>([&] { load_weights(folder / "weights", set); });
  };
  std::vector<NamedArray> arrays;
  for (const Parameter* p : set.all())
    arrays.push_back(
        {p->name, p->shape, std::vector<float>(static_cast<std::size_t>(p->shape.count()))});
  auto missing = arrays, wrong = arrays, extra = arrays;
  missing.pop_back();
  wrong[5] = {"4.bias", {11}, std::vector<float>(11)};
  extra.push_back({"6.bias", {1}, {0}});
  CHECK(complain(missing).ends_with("has no tensor 4.bias, which this model needs"));
  CHECK(complain(wrong).ends_with("tensor 4.bias is [11], but this model needs [10]"));
  CHECK(complain(extra).ends_with("has the tensor 6.bias, which this model does not"));
  for (const float value : {NAN, INFINITY}) {
    auto broken = arrays;
    broken[3].values[7] = value;
    CHECK(complain(broken) == (folder / "weights").string() + ": tensor " + arrays[3].name +
                                  " holds values that are not finite");
  }
  CHECK(weights_hash(set) == before);
}
