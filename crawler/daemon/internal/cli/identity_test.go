package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestIdentityCommands checks that only its owner can read a new key, that a key never overwrites a
// file, and that the key directory has the new key.
func TestIdentityCommands(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	made := runCommand(t, "identity", "key", file("bot.pem"))
	made.want(t, command.ExitDone)
	if info, err := os.Stat(file("bot.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	runCommand(t, "identity", "directory", file("bot.pem")).want(t, command.ExitDone,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"`+strings.TrimSpace(made.stdout)+`"`)
	runCommand(t, "identity", "key", file("bot.pem")).want(t, command.ExitUsage,
		"already exists, and may be a key in use")
	runCommand(t, "identity", "key", file("no/bot.pem")).want(t, command.ExitFailed, "no such file or directory")
	runCommand(t, "identity", "directory").want(t, command.ExitUsage, "FILE is missing")
	runCommand(t, "identity", "directory", file("bot.pem"), file("bot.pem")).want(t,
		command.ExitUsage, "holds the same key as")
	runCommand(t, "identity", "directory", dir).want(t, command.ExitUsage, "is not a key file")
	runCommand(t, "identity", "directory", testfile.Write(t, "x.pem", "secret")).want(t, command.ExitUsage,
		"no private key in PEM found")
	if err := os.Chmod(file("bot.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "identity", "directory", file("bot.pem")).want(t, command.ExitUsage, "others may read the key in")
	runCommand(t, "crawl", "--data", file("data"), "-c",
		testfile.Write(t, "p.yaml", daemontest.MinimalProject[:len("agent: {contact: \"mailto:bot@example.com\"")]+
			", signature: {keys: ["+file("bot.pem")+
			"], directory: 'https://bot.example.com'}}\nseeds: [https://example.com/]\n")).
		want(t, command.ExitUsage, "agent.signature.keys[0]: others may read the key in")
	if _, err := os.Stat(file("data")); err == nil {
		t.Error("the rejected crawl created its data directory")
	}
}
