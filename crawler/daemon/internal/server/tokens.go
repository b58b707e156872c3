package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/internal/yamllimit"
)

// The files of a daemon's directory that hold its tokens.
const (
	TokenFile     = "token"      // who has it may operate the daemon
	readTokenFile = "token-read" // who has it may look
)

// minTokenLength is how many characters a token must have that somebody chose.
const minTokenLength = 20

// loadOrCreateDaemonTokens returns the keys of the daemon's own tokens, which are made at its
// first start.
func loadOrCreateDaemonTokens(dir datadir.StateDir) ([]api.APIKey, error) {
	var keys []api.APIKey
	for _, t := range []struct {
		file string
		role api.Role
	}{{TokenFile, api.RoleOperate}, {readTokenFile, api.RoleRead}} {
		token, err := readOrCreateToken(dir.Path(t.file))
		if err != nil {
			return nil, err
		}
		keys = append(keys, api.APIKeyFromToken(t.file, t.role, token))
	}
	return keys, nil
}

// readOrCreateToken reads a token that nobody else may read, or makes one.
func readOrCreateToken(file string) (string, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		return token, datadir.WriteFileAtomic(file, []byte(token+"\n"))
	}
	if err != nil {
		return "", err
	}
	if disk.ReadableByOthers(info) {
		return "", usage.Errorf("others may read the token in %s: chmod 600 it, or remove it and a new one is made", file)
	}
	text, err := inputfile.ReadSmall(os.Open, file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minTokenLength {
		return "", usage.Errorf("%s holds no token of %d characters or more: remove it, and a new one is made", file, minTokenLength)
	}
	return token, nil
}

// An apiTokenEntry is one of a file of tokens (--tokens): whose it is, what he may, and
// the SHA-256 of the token. The token itself is with its holder only.
type apiTokenEntry struct {
	Name   string `yaml:"name"`
	Role   string `yaml:"role"`
	SHA256 string `yaml:"sha256"`
}

var tokenNamePattern = regexp.MustCompile(`^[a-zA-Z0-9._@-]{1,64}$`)

// readTokensFile returns the keys of a file of tokens, which join those that there are.
func readTokensFile(file string, keys []api.APIKey) ([]api.APIKey, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, usage.Errorf("--tokens: %w", err)
	case disk.WritableByOthers(info):
		return nil, usage.Errorf("--tokens: others may write to %s, and so let themselves in: chmod go-w it", file)
	}
	text, err := inputfile.ReadSmall(os.Open, file)
	if err != nil {
		return nil, usage.Errorf("--tokens: %w", err)
	}
	var entries []apiTokenEntry
	const aliasProblem = "anchors, aliases and tags have no place in a file of tokens; write the value itself"
	if _, exceeded := yamllimit.Tokenize(string(text), aliasProblem); exceeded != nil {
		return nil, usage.Errorf("--tokens: %s:%d:%d: %s", file, exceeded.Line, exceeded.Column, exceeded.Problem)
	}
	if err := yaml.UnmarshalWithOptions(text, &entries, yaml.Strict()); err != nil {
		return nil, usage.Errorf("--tokens: %s: %s", file, plaintext.TruncateQuotedValues(yaml.FormatError(err, false, false)))
	}
	for i, e := range entries {
		key, err := e.apiKey(keys)
		if err != nil {
			return nil, usage.Errorf("--tokens: %s: entry %d: %w", file, i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// apiKey returns the key of an entry, unless it makes no sense, or others have its name
// or its token.
func (e apiTokenEntry) apiKey(others []api.APIKey) (k api.APIKey, err error) {
	hash, err := hex.DecodeString(e.SHA256)
	switch {
	case !tokenNamePattern.MatchString(e.Name):
		return k, fmt.Errorf("name is %q, and must have 1 to 64 of the letters, digits, and . _ @ -", e.Name)
	case e.Name == api.SocketCallerName:
		return k, fmt.Errorf("name is %q, by which the audit names callers of the daemon's socket", e.Name)
	case e.Role != string(api.RoleRead) && e.Role != string(api.RoleOperate):
		return k, fmt.Errorf("role is %q, and must be read or operate", e.Role)
	case err != nil || len(hash) != sha256.Size:
		return k, fmt.Errorf("sha256 is not the SHA-256 of a token, 64 digits in hex: printf %%s TOKEN | sha256sum")
	}
	k = api.APIKey{Name: e.Name, Role: api.Role(e.Role), Hash: [sha256.Size]byte(hash)}
	for _, o := range others {
		if o.Name == k.Name || o.Hash == k.Hash {
			return k, fmt.Errorf("%s has the name or the token of %s: the audit could not tell them apart", e.Name, o.Name)
		}
	}
	if k.Hash == sha256.Sum256(nil) {
		return k, fmt.Errorf("sha256 is that of no token at all")
	}
	return k, nil
}
