// Runs all tests. Takes doctest's options (-tc='name*' selects cases, --help lists more). The last
// line has the counts: "N passed, M failed". After each case that fails comes a line that names it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

unsigned passed = 0, failed = 0;

struct Counter : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    failed = stats.numTestCasesFailed;
    passed = stats.numTestCasesPassingFilters - failed;
  }
  void test_case_start(const doctest::TestCaseData& test_case) override {
    name_ = test_case.m_name;
  }
  // Also called when a signal is about to end the program.
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.testCaseSuccess) return;
    std::printf("failed: %s\n", name_.c_str());
    std::fflush(stdout);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::string name_;
};
REGISTER_LISTENER("counter", 1, Counter);

}  // namespace

int main(int argc, char** argv) {
  ::setenv("TANDEM_CACHE", "", 1);  // what earlier runs have found out changes no test
  doctest::Context context(argc, argv);
  const int status = context.run();
  if (context.shouldExit()) return status;
  std::printf("%u passed, %u failed\n", passed, failed);
  return status;
}
