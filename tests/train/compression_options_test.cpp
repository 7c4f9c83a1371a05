// Values of --compress that training programs accept or refuse.
#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/support.h"
#include "train/check_options.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("compression options: terngrad-ring is refused on a GPU") {
  TrainOptions o;
  o.workers = 2;
  o.compress = "terngrad-ring";
  CHECK(check_options(o).compress == "terngrad-ring");
  o.device = DeviceKind::cuda;
  const std::string why =
      "--compress terngrad-ring needs --device cpu: no GPU can pack gradients like this";
  CHECK(message_of<UserError>([&] { check_options(o); }) == why);
  o.compress = "auto:none,terngrad-ring";
  CHECK(message_of<UserError>([&] { check_options(o); }) == why);
}
