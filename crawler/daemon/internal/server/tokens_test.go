package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

func TestTokensFile(t *testing.T) {
	ours := []api.APIKey{api.APIKeyFromToken("token", api.RoleOperate, "ours")}
	hash := func(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
	entry := func(name, role, sha string) string {
		return fmt.Sprintf("- {name: %q, role: %q, sha256: %q}\n", name, role, sha)
	}
	good := "# who may\n" + entry("ada@example.org", "operate", hash("ada")) + entry("wall", "read",
		strings.ToUpper(hash("wall")))
	keys, err := readTokensFile(testfile.Write(t, "tokens.yaml", good), ours)
	if err != nil || len(keys) != 3 || keys[1] != api.APIKeyFromToken("ada@example.org", api.RoleOperate, "ada") ||
		keys[2] != api.APIKeyFromToken("wall", api.RoleRead, "wall") {
		t.Fatalf("keys %v, %v", keys, err)
	}
	for _, tt := range []struct{ text, says string }{
		{entry("", "read", hash("x")), "entry 1: name"},
		{entry("a\nb", "read", hash("x")), "name is"},
		{entry("ada", "root", hash("x")), "must be read or operate"},
		{entry("ada", "read", "abc"), "is not the SHA-256 of a token"},
		{entry("ada", "read", "x"+hash("x")[1:]), "is not the SHA-256 of a token"},
		{entry("ada", "read", hash("")), "the hash of the empty token"},
		{entry("token", "read", hash("x")), "has the name or the token of token"},
		{entry("ada", "read", hash("ours")), "has the name or the token of token"},
		{good + entry("bob", "read", hash("ada")), "entry 3: bob has the name or the token of ada@example.org"},
		{"- {name: ada, role: read, sha: 1}\n", "unknown field"},
		{"name: ada\n", "tokens.yaml"},
		{"- [\n", "tokens.yaml"},
		{"- {name: ada, role: read, " + strings.Repeat("s", 900) + ": 1}\n", "unknown"},
		{entry(strings.Repeat("a", 60_000), "read", hash("x")), "name is"},
		{"a:\n  " + strings.Repeat("- [\n", 200_000), "values and marks"},
		{"- " + strings.Repeat("[", 40), "tokens.yaml:1:34: lists and mappings are nested more than 32 deep"},
		{"- &a {name: ada}\n- *a\n", "anchors, aliases and tags are not allowed"},
		{strings.Repeat("#\n", inputfile.MaxSmallBytes), "is longer than"},
	} {
		keys, err := readTokensFile(testfile.Write(t, "tokens.yaml", tt.text), ours)
		if err != nil && len(project.DetailedErrorText(err)) > 1000 {
			t.Errorf("%.80q: the error has %d bytes", tt.text, len(project.DetailedErrorText(err)))
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.80q: %v, %v; want %q", tt.text, keys, err, tt.says)
		}
	}
	open := testfile.Write(t, "tokens.yaml", good)
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readTokensFile(open, ours); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("a file that every user may write: %v", err)
	}
	if _, err := readTokensFile(open+".none", ours); err == nil {
		t.Error("a missing file causes no error")
	}
}

// A token that is a symbolic link is replaced where it leads, because a restart reads it there. Another file
// or link at the name of the replacement is not written to.
func TestRotateLinkedToken(t *testing.T) {
	dir, elsewhere := datadir.StateDir(t.TempDir()), filepath.Join(t.TempDir(), "secret")
	other := testfile.Write(t, "other", "unchanged")
	if err := errors.Join(os.WriteFile(elsewhere, []byte(strings.Repeat("x", minTokenLength)), 0o600),
		os.Symlink(elsewhere, dir.Path(TokenFile)), os.Symlink(other, elsewhere+".new")); err != nil {
		t.Skip(err) // some systems have no symbolic links
	}
	key, file, err := rotateDaemonToken(dir, TokenFile, datadir.WriteFileAtomic)
	if err != nil {
		t.Fatal(err)
	}
	token, err := readOrCreateToken(elsewhere)
	if err != nil || api.APIKeyFromToken(TokenFile, api.RoleOperate, token) != key || filepath.Base(file) != "secret" {
		t.Errorf("the key is not that of the token in %s, or not in %s: %v", elsewhere, file, err)
	}
	if again, err := readOrCreateToken(dir.Path(TokenFile)); again != token || err != nil {
		t.Errorf("a restart reads %q, %v; want %q", again, err, token)
	}
	if text, err := os.ReadFile(other); string(text) != "unchanged" || err != nil {
		t.Errorf("the other file is %q, %v", text, err)
	}
}

// TestRotateTokenNotDurable: if the new token is in the file and cannot be made durable, it is the one that is
// valid, because a restart reads it. If it is not in the file, the old one stays valid.
func TestRotateTokenNotDurable(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	old, err := readOrCreateToken(dir.Path(TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := rotateDaemonToken(dir, TokenFile, func(string, []byte) error { return syscall.ENOSPC })
	if key != (api.APIKey{}) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("nothing is written: key %v, %v", key, err)
	}
	if key, _, err = rotateDaemonToken(dir, TokenFile, func(name string, _ []byte) error {
		return errors.Join(os.Remove(name), syscall.ENOSPC)
	}); key != (api.APIKey{}) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the file is gone: key %v, %v", key, err)
	}
	if _, err := os.Stat(dir.Path(TokenFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed rotation has created a token that the daemon does not accept: %v", err)
	}
	key, _, err = rotateDaemonToken(dir, TokenFile, func(name string, text []byte) error {
		return errors.Join(datadir.WriteFileAtomic(name, text), syscall.EIO) // as if the sync of the directory failed
	})
	token, readErr := readOrCreateToken(dir.Path(TokenFile))
	if readErr != nil || token == old {
		t.Fatalf("the file has the old token, or cannot be read: %v", readErr)
	}
	if key != api.APIKeyFromToken(TokenFile, api.RoleOperate, token) || !errors.Is(err, syscall.EIO) {
		t.Errorf("key %v, %v; want that of the token in the file, and the failure", key, err)
	}
}
