// Runs all tests. Takes doctest's options (-tc='name*' selects cases, --help lists more). The last
// line has the counts: "N passed, M failed". The lines before it name the cases that failed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

unsigned passed = 0;
std::vector<std::string> failed;

struct Counter : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    passed = stats.numTestCasesPassingFilters - stats.numTestCasesFailed;
  }
  void test_case_start(const doctest::TestCaseData& test_case) override {
    name_ = test_case.m_name;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!stats.testCaseSuccess) failed.push_back(name_);
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
  for (const std::string& name : failed) std::printf("failed: %s\n", name.c_str());
  std::printf("%u passed, %zu failed\n", passed, failed.size());
  return status;
}
