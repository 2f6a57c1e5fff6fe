#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Where the files are that Zeus keeps for a user, and how they are called.
namespace zeus {

using Environment = std::function<std::optional<std::string>(const std::string& variable)>;

// That of this process.
Environment ProcessEnvironment();

// $XDG_CONFIG_HOME/zeus/<kind>, else $HOME/.config/zeus/<kind>; nullopt where the user has no home.
std::optional<std::filesystem::path> UserFolder(const Environment& environment,
                                                std::string_view kind);

// $XDG_DATA_HOME/zeus/<kind>, else $HOME/.local/share/zeus/<kind>: what programs write for
// themselves. nullopt where the user has no home.
std::optional<std::filesystem::path> UserDataFolder(const Environment& environment,
                                                    std::string_view kind);

// Names come from users and drivers: whatever they say, it stays a part of one name in one folder.
// What is no letter, digit, dot or hyphen becomes a hyphen; nothing becomes "unknown".
std::string FileNamePart(std::string_view text);

}  // namespace zeus
