package server

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
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
