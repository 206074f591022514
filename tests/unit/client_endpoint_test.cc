// SPDX-License-Identifier: Apache-2.0
#include "client/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace flagos::client {
namespace {

using ::testing::HasSubstr;

class EndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"FLAGOS_ENDPOINT", "FLAGOS_TOKEN", "FLAGOS_DEVICES", "FLAGOS_VENDOR"}) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static void Set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
};

TEST_F(EndpointTest, UnsetIsTheSystemSocketWhereThereIsOneElseEmbedded) {
  const auto endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  const bool system = ::access(kSystemSocket, F_OK) == 0;
  EXPECT_EQ(endpoint.value().kind, system ? Endpoint::Kind::kUnix : Endpoint::Kind::kEmbedded);
}

TEST_F(EndpointTest, Unix) {
  Set("FLAGOS_ENDPOINT", "unix:///tmp/some/flagosd.sock");
  const auto endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().kind, Endpoint::Kind::kUnix);
  EXPECT_EQ(endpoint.value().path, "/tmp/some/flagosd.sock");
  EXPECT_EQ(endpoint.value().text(), "unix:///tmp/some/flagosd.sock");
}

TEST_F(EndpointTest, TheTokenOfAMountedFolderLiesBesideItsSocket) {
  const std::string file = std::string(::testing::TempDir()) + "token";
  std::ofstream(file) << std::string(62, '0') + "2a\n";
  Set("FLAGOS_ENDPOINT", "unix://" + std::string(::testing::TempDir()) + "flagosd.sock");
  auto endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().token[31], 0x2a);
  Set("FLAGOS_TOKEN", std::string(62, '0') + "07");
  endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().token[31], 0x07) << "the environment comes first";
  ::unsetenv("FLAGOS_TOKEN");
  std::ofstream(file) << "nonsense\n";
  endpoint = ReadEndpoint();
  ASSERT_FALSE(endpoint.ok());
  EXPECT_THAT(endpoint.error().message, HasSubstr(file));
  ::unlink(file.c_str());
  EXPECT_TRUE(ReadEndpoint().ok());
}

TEST_F(EndpointTest, Embedded) {
  Set("FLAGOS_ENDPOINT", "embedded");
  Set("FLAGOS_DEVICES", "4");
  Set("FLAGOS_VENDOR", "null");
  const auto endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().kind, Endpoint::Kind::kEmbedded);
  EXPECT_EQ(endpoint.value().devices, 4u);
  EXPECT_EQ(endpoint.value().vendor, "null");
  EXPECT_EQ(endpoint.value().text(), "embedded");
}

TEST_F(EndpointTest, OthersAreErrorsThatListWhatIsAccepted) {
  for (const char* value : {"unix://", "unix://relative", "tcp://host:1", "Embedded", "/path", "embedded "}) {
    Set("FLAGOS_ENDPOINT", value);
    const auto endpoint = ReadEndpoint();
    ASSERT_FALSE(endpoint.ok()) << value;
    EXPECT_EQ(endpoint.error().code, ErrorCode::kValue);
    EXPECT_THAT(endpoint.error().message, HasSubstr(value));
    EXPECT_THAT(endpoint.error().message, HasSubstr("unix:///path"));
    EXPECT_THAT(endpoint.error().message, HasSubstr("embedded"));
  }
}

TEST_F(EndpointTest, BadDevicesAndVendorsAreErrors) {
  Set("FLAGOS_ENDPOINT", "embedded");
  for (const char* value : {"0", "-1", "65", "two", "1 ", "99999999999"}) {
    Set("FLAGOS_DEVICES", value);
    EXPECT_FALSE(ReadEndpoint().ok()) << value;
  }
  ::unsetenv("FLAGOS_DEVICES");
  for (const char* value : {"../cpu", "a b", "cpu;"}) {
    Set("FLAGOS_VENDOR", value);
    EXPECT_FALSE(ReadEndpoint().ok()) << value;
  }
}

TEST_F(EndpointTest, Token) {
  Set("FLAGOS_TOKEN", std::string(62, '0') + "fA");
  const auto endpoint = ReadEndpoint();
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().token[30], 0);
  EXPECT_EQ(endpoint.value().token[31], 0xfa);
}

TEST_F(EndpointTest, ABadTokenIsAnErrorThatDoesNotTellTheToken) {
  for (const std::string& value :
       {std::string("secretsecret"), std::string(64, 'g'), std::string(66, '0'), "-" + std::string(63, '1')}) {
    Set("FLAGOS_TOKEN", value);
    const auto endpoint = ReadEndpoint();
    ASSERT_FALSE(endpoint.ok()) << value;
    EXPECT_EQ(endpoint.error().message.find(value), std::string::npos);
  }
}

}  // namespace
}  // namespace flagos::client
