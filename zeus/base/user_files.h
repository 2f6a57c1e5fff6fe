#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// The places and names of the files that Zeus keeps for a user.
namespace zeus {

using Environment = std::function<std::optional<std::string>(const std::string& variable)>;

// The environment of this process.
Environment ProcessEnvironment();

// $XDG_CONFIG_HOME/zeus/<kind>, else $HOME/.config/zeus/<kind>; nullopt where the user has no home.
std::optional<std::filesystem::path> UserFolder(const Environment& environment,
                                                std::string_view kind);

// $XDG_DATA_HOME/zeus/<kind>, else $HOME/.local/share/zeus/<kind> for files
// that programs write for themselves; nullopt where the user has no home.
std::optional<std::filesystem::path> UserDataFolder(const Environment& environment,
                                                    std::string_view kind);

// Makes a safe part of a file name of a text that a user or a driver chose: every character but
// letters, digits, dots and hyphens becomes a hyphen, and an empty text becomes "unknown".
std::string FileNamePart(std::string_view text);

}  // namespace zeus
