#include "simulate/net_table.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "simulate/count_flop.h"
#include "simulate/devices.h"
#include "simulate/nets/nets.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace tandem;
using namespace tandem::test;

namespace {

const std::string kBegin = "tandem net 1\nnet a\nsource b c\n", kTensor = "tensor t 10 1 2\n";

std::string refusal(const std::string& text) { return refusal_of_file("n", text, read_net_table); }

// Sums over the tensors whose names do not begin with any of these.
struct Sums {
  std::int64_t parameters = 0;
  double forward_flop = 0;
};
Sums sums_without(const NetTable& table, const std::vector<std::string>& prefixes) {
  Sums sums;
  for (const NetTable::Tensor& t : table.tensors) {
    if (std::ranges::any_of(prefixes, [&](const auto& p) { return t.name.starts_with(p); }))
      continue;
    sums.parameters += t.elements;
    sums.forward_flop += t.forward_flop;
  }
  return sums;
}

const NetTable::Tensor& tensor_of(const std::vector<NetTable::Tensor>& tensors,
                                  const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NetTable::Tensor::name);
  REQUIRE(found != tensors.end());
  return *found;
}

}  // namespace

TEST_CASE("net table: what is written is read back") {
  const NetTable table{.net = "a-net",
                       .source = "some words, counted",
                       .tensors = {{"a.weight", 100, 236027904, 1e17}, {"a.bias", 1, 0.5, 3}}};
  const TemporaryFolder folder;
  write_bytes(folder / "n", to_text(table));
  const NetTable read = read_net_table(folder / "n");
  CHECK(to_text(read) == to_text(table));
  CHECK(read.net == "a-net");
  CHECK(read.source == "some words, counted");
  CHECK(read.parameters() == 101);
  CHECK(read.tensors[0].forward_flop == 236027904);
  CHECK(read.tensors[0].backward_flop == 1e17);
}

TEST_CASE("net table: what is wrong is refused with its line") {
  CHECK(refusal("") == "n: the file is empty");
  CHECK(refusal("tandem profile 1\n") == "n, line 1: it does not begin with 'tandem net 1'");
  CHECK(refusal(kBegin) == "n: it has no tensor");
  CHECK(refusal("tandem net 1\n" + kTensor) == "n: it does not name the net");
  CHECK(refusal(kBegin + "# t\n\n" + kTensor + kTensor) == "n: two tensors are called t");
  CHECK(refusal(kBegin + "net b\n") == "n, line 4: it has two names");
  CHECK(refusal(kBegin + "source b\n") == "n, line 4: it has two sources");
  CHECK(refusal("tandem net 1\nnet two words\n") == "n, line 2: words does not belong there");
  CHECK(refusal("tandem net 1\nnet\n") == "n, line 2: the net's name is missing");
  CHECK(refusal(kBegin + "tensor t 10 0 0\n") == "n: its forward or backward computes nothing");
  CHECK(refusal(kBegin + "tensor t 10 1\n") == "n, line 4: backward's FLOP is missing");
  CHECK(refusal(kBegin + "tensor t 10 1 2 3\n") == "n, line 4: 3 does not belong there");
  CHECK(refusal(kBegin + "tensor t 1.5 1 2\n").ends_with("not 1.5"));
  CHECK(refusal(kBegin + "tensor t 10 inf 2\n").ends_with("not inf"));
  CHECK(refusal(kBegin + "tensor t 10 -1 2\n").ends_with("not -1"));
  CHECK(refusal(kBegin + "layer t 10 1 2\n") == "n, line 4: layer begins no line of a net");
  CHECK(message_of<UserError>([] { read_net_table("/no/such/file"); }).find("/no/such/file") !=
        std::string::npos);
}

TEST_CASE("net table: profiles/ has what the program writes") {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator("profiles"))
    if (entry.path().extension() == ".net") files.insert(entry.path().stem());
  CHECK(files == std::set<std::string>(net_names().begin(), net_names().end()));
  for (const std::string& name : net_names()) {
    CAPTURE(name);
    const NetTable table = net_named(name);
    const fs::path path = "profiles/" + name + ".net";
    const bool same = read_bytes(path) == to_text(table);
    CHECK_MESSAGE(same, "make profiles writes it again");
    CHECK(to_text(read_net_table(path)) == to_text(table));
    for (const NetTable::Tensor& t : table.tensors) {
      CAPTURE(t.name);
      CHECK(t.forward_flop > 0);
      CHECK(t.backward_flop > 0);
    }
  }
}

// Parameters and multiply-adds of forward as torchvision publishes them; Inception-v4's are those
// of its port to PyTorch.
TEST_CASE("net table: parameters and FLOP are the published ones") {
  struct Published {
    std::int64_t parameters;
    double giga_multiply_adds;
  };
  const std::map<std::string, Published> kPublished = {
      {"alexnet", {61'100'840, 0.714}},      {"densenet121", {7'978'856, 2.83}},
      {"googlenet", {6'624'904, 1.498}},     {"inception-v3", {23'834'568, 5.71}},
      {"inception-v4", {42'679'816, 12.28}}, {"resnet50", {25'557'032, 4.09}},
      {"resnet101", {44'549'160, 7.80}},     {"resnet152", {60'192'808, 11.51}},
      {"vgg16", {138'357'544, 15.47}},       {"vgg19", {143'667'240, 19.63}}};
  for (const auto& [name, published] : kPublished) {
    CAPTURE(name);
    const Sums sums = sums_without(net_named(name), {"aux1.", "aux2.", "AuxLogits."});
    CHECK(sums.parameters == published.parameters);
    CHECK(sums.forward_flop / 2e9 == doctest::Approx(published.giga_multiply_adds).epsilon(0.03));
  }
  // As they are trained, with their auxiliary classifiers.
  CHECK(net_named("googlenet").parameters() == 13'004'888);
  CHECK(net_named("inception-v3").parameters() == 27'161'264);
}

TEST_CASE("net table: Sockeye's first tensor is its largest") {
  const NetTable sockeye = net_named("sockeye");
  for (const NetTable::Tensor& t : sockeye.tensors)
    CHECK(t.elements <= sockeye.tensors.front().elements);
  CHECK(sockeye.tensors.front().elements == 17'191 * 512);
}

TEST_CASE("net table: FLOP are counted from a model's operations") {
  Sequential model;
  model.add<Flatten>("flatten")
      .add<Linear>("first", 12, 5, Init::he_normal, Random())
      .add<Relu>("relu")
      .add<Linear>("second", 5, 3, Init::he_normal, Random());
  const auto tensors = count_flop(model, {2, 2, 3});
  REQUIRE(tensors.size() == 4);
  CHECK(tensors[0].name == "first.weight");
  CHECK(tensors[0].forward_flop == 2 * 12 * 5);
  CHECK(tensors[0].backward_flop == 2 * 12 * 5);  // nobody wants the gradient of the images
  CHECK(tensors[1].forward_flop == 5);
  CHECK(tensors[2].forward_flop == 2 * 5 * 3);
  CHECK(tensors[2].backward_flop == 2 * 2 * 5 * 3);
  CHECK(tensors[3].name == "second.bias");
  CHECK(tensors[3].backward_flop == 3);
}

TEST_CASE("net table: convolutions, also in groups of branches, count their positions") {
  const NetTable resnet = net_named("resnet50");
  CHECK(resnet.tensors.front().name == "conv1.weight");
  CHECK(resnet.tensors.back().name == "fc.bias");
  const NetTable::Tensor& first = resnet.tensors.front();
  CHECK(first.forward_flop == 2.0 * 64 * 3 * 7 * 7 * 112 * 112);
  CHECK(first.backward_flop == first.forward_flop);
  const auto& shortcut = tensor_of(resnet.tensors, "layer2.0.downsample.0.weight");
  CHECK(shortcut.forward_flop == 2.0 * 256 * 512 * 28 * 28);
  CHECK(shortcut.backward_flop == 2 * shortcut.forward_flop);
  const auto& norm = tensor_of(resnet.tensors, "bn1.weight");
  CHECK(norm.forward_flop == 7.0 * 64 * 112 * 112);
}

TEST_CASE("devices: a measured rate is the time of an iteration") {
  const NetTable net = net_named("resnet50");
  const Profile p = profile_of(net, device_speed_named("k80"), 32);
  CHECK(p.net == "resnet50");
  CHECK(p.batch == 32);
  CHECK(p.elements() == net.parameters());
  CHECK(p.forward_s() + p.backward_s() == doctest::Approx(2 * 32 / 76.85));
  CHECK(p.forward_s() / p.backward_s() ==
        doctest::Approx(net.forward_flop() / net.backward_flop()));
  CHECK(p.forward_s() == doctest::Approx(p.backward_s() / 2).epsilon(0.03));
  CHECK(p.source.find("measured") != std::string::npos);
}

TEST_CASE("devices: without one, FLOP are") {
  const NetTable net = net_named("vgg19");
  const DeviceSpeed& device = device_speed_named("p4000");
  const Profile p = profile_of(net, device, 16);
  CHECK(p.forward_s() == doctest::Approx(16 * net.forward_flop() / device.flop_per_s));
  CHECK(p.tensors[0].backward_s ==
        doctest::Approx(16 * net.tensors[0].backward_flop / device.flop_per_s));
  CHECK(p.source.find("estimate") != std::string::npos);
  CHECK(p.source.find('\n') == std::string::npos);
}

TEST_CASE("devices: FLOP per second are those of ResNet-50, of nets that exist") {
  const NetTable resnet = net_named("resnet50");
  const double flop = resnet.forward_flop() + resnet.backward_flop();
  for (const DeviceSpeed& device : device_speeds()) {
    CAPTURE(device.name);
    CHECK(!device.source.empty());
    for (const auto& [net, rate] : device.samples_per_s) {
      CAPTURE(net);
      CHECK(std::ranges::count(net_names(), net) == 1);
      CHECK(rate > 0);
    }
    const auto measured = device.samples_per_s.find("resnet50");
    const double rate = measured != device.samples_per_s.end() ? measured->second : 32 / 0.307;
    CHECK(device.flop_per_s == doctest::Approx(rate * flop).epsilon(0.01));
  }
}

TEST_CASE("devices: unknown names are refused with the choices") {
  CHECK(message_of<UserError>([] { device_speed_named("abacus"); }) ==
        "there is no device abacus: choose from k80, p4000, titan-v, v100, h200, h200-bf16");
  CHECK(message_of<UserError>([] {
          net_named("resnet51");
        }).starts_with("there is no net resnet51: choose from alexnet, densenet121, "));
}

TEST_CASE("net tables: the program prints and writes them") {
  CHECK(run_program("net_tables", {"--net", "alexnet"}).out == to_text(net_named("alexnet")));
  const ProgramResult unknown = run_program("net_tables", {"--net", "lexnet"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.starts_with("net_tables: there is no net lexnet: choose from "));
  CHECK(run_program("net_tables", {"--out", "/no/such/folder"}).status == 2);
  const ProgramResult list = run_program("net_tables", {});
  for (const std::string& name : net_names()) CHECK(list.out.find(name) != std::string::npos);
}
