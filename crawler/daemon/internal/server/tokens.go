package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// The files in a daemon's directory that hold its tokens.
const (
	TokenFile     = "token"      // the token of the role operate
	ReadTokenFile = "token-read" // the token of the role read
)

// minTokenLength is the minimum number of characters of a token that a user has written into a file.
const minTokenLength = 20

// daemonTokens lists the files of the daemon's own tokens, which are also the names of their keys.
var daemonTokens = []struct {
	file string
	role api.Role
}{{TokenFile, api.RoleOperate}, {ReadTokenFile, api.RoleRead}}

// loadOrCreateDaemonTokens returns the API keys of the daemon's own tokens, and creates the tokens at the
// first start.
func loadOrCreateDaemonTokens(dir datadir.StateDir) ([]api.APIKey, error) {
	var keys []api.APIKey
	for _, t := range daemonTokens {
		token, err := readOrCreateToken(dir.Path(t.file))
		if err != nil {
			return nil, err
		}
		keys = append(keys, api.APIKeyFromToken(t.file, t.role, token))
	}
	return keys, nil
}

// readOrCreateToken reads the token in a file, or creates the file with a random token if it does not
// exist. It fails if other users may read the file.
func readOrCreateToken(file string) (string, error) {
	// Create a missing token.
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		return token, datadir.WriteFileAtomic(file, []byte(token+"\n"))
	}
	if err != nil {
		return "", err
	}
	// Accept an existing token, which a user may have written, only if it is secret and hard to guess.
	if disk.ReadableByOthers(info) {
		return "", usage.Errorf("others may read the token in %s: chmod 600 it, or remove it to have a new one created",
			file)
	}
	text, err := inputfile.ReadSmall(os.Open, file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minTokenLength {
		return "", usage.Errorf("%s holds no token of %d characters or more: remove it to have a new one created", file,
			minTokenLength)
	}
	return token, nil
}

// rotateDaemonToken writes a new token by write, which is datadir.WriteFileAtomic except in tests, to the
// file called name, which is one of daemonTokens. It returns the key of the token and the path of the file.
// After an error, the key is that of the token if the file holds it all the same, because then a restart
// reads it; otherwise the key is zero, and the old token stays in use.
func rotateDaemonToken(dir datadir.StateDir, name string,
	write func(name string, text []byte) error) (key api.APIKey, file string, err error) {
	for _, t := range daemonTokens {
		if t.file != name {
			continue
		}
		// Write to the file that a link leads to, which the next start of the daemon reads.
		token, file := rand.Text(), dir.Path(t.file)
		if target, err := filepath.EvalSymlinks(file); err == nil {
			file = target
		} else if !errors.Is(err, fs.ErrNotExist) {
			return key, file, fmt.Errorf("the token is not replaced: %w", err)
		}
		if err := write(file, []byte(token+"\n")); err != nil {
			if text, readErr := inputfile.ReadSmall(os.Open, file); readErr != nil || string(text) != token+"\n" {
				return key, file, fmt.Errorf("the token is not replaced: %w", err)
			}
			err = fmt.Errorf("the token in %s is replaced, but a loss of power may bring back the old one: %w",
				file, err)
			return api.APIKeyFromToken(t.file, t.role, token), file, err
		}
		return api.APIKeyFromToken(t.file, t.role, token), file, nil
	}
	return key, "", api.NotFound("%q is not a token of the daemon: expected %s or %s; a token of --tokens is replaced "+
		"in that file", name, TokenFile, ReadTokenFile)
}

// An apiTokenEntry is an entry of the file of tokens (--tokens). The file holds only the hash of a token;
// the token itself is known only to its holder.
type apiTokenEntry struct {
	Name   string `yaml:"name"`   // names the holder in the audit log
	Role   string `yaml:"role"`   // read or operate
	SHA256 string `yaml:"sha256"` // of the token, in hexadecimal
}

// tokenNamePattern matches the names that an entry may have.
var tokenNamePattern = regexp.MustCompile(`^[a-zA-Z0-9._@-]{1,64}$`)

// readTokensFile returns keys, followed by the API keys of a file of tokens. It fails if other users may
// write to the file, or if an entry is invalid.
func readTokensFile(file string, keys []api.APIKey) ([]api.APIKey, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, usage.Errorf("--tokens: %w", err)
	case disk.WritableByOthers(info):
		return nil, usage.Errorf("--tokens: others may write to %s, and could add a token: chmod go-w it", file)
	}
	// Check that the text is within the limits of the YAML parser, then parse it.
	text, err := inputfile.ReadSmall(os.Open, file)
	if err != nil {
		return nil, usage.Errorf("--tokens: %w", err)
	}
	var entries []apiTokenEntry
	const aliasProblem = "anchors, aliases and tags are not allowed in a file of tokens; write the value itself"
	if _, exceeded := yamllimit.Tokenize(string(text), aliasProblem); exceeded != nil {
		return nil, usage.Errorf("--tokens: %s:%d:%d: %s", file, exceeded.Line, exceeded.Column, exceeded.Problem)
	}
	if err := yaml.UnmarshalWithOptions(text, &entries, yaml.Strict()); err != nil {
		return nil, usage.Errorf("--tokens: %s: %s", file,
			plaintext.TruncateQuotedValues(yaml.FormatError(err, false, false)))
	}
	// Check each entry against all keys before it: names and tokens must be unique.
	for i, e := range entries {
		key, err := e.apiKey(keys)
		if err != nil {
			return nil, usage.Errorf("--tokens: %s: entry %d: %w", file, i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// apiKey returns the API key of an entry. It fails if the entry is invalid, or if one of the other keys
// has its name or its token.
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
			return k, fmt.Errorf("%s has the name or the token of %s: the audit could not distinguish them", e.Name,
				o.Name)
		}
	}
	if k.Hash == sha256.Sum256(nil) {
		return k, fmt.Errorf("sha256 is the hash of the empty token")
	}
	return k, nil
}
