package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Signing says with which keys requests are signed, so that sites can tell them from
// those of somebody who only bears the same name. Without keys, they are not signed.
type Signing struct {
	KeyFiles           []string `yaml:"keys"`      // files; the first key signs, all are in the key directory
	KeyDirectoryOrigin string   `yaml:"directory"` // the origin that the key directory is at
	SignatureTTL       Duration `yaml:"valid"`     // for so long from when the request is sent
	// how Signature-Agent is written: dictionary, or string, for sites whose verifiers know only the early drafts of Web Bot Auth
	SignatureAgentForm string `yaml:"agent_form"`
}

// isUsed reports whether requests are signed.
func (s *Signing) isUsed() bool { return len(s.KeyFiles) > 0 }

// keyDirectoryOrigin returns the origin of the key directory, of a project that has been checked.
func (s *Signing) keyDirectoryOrigin() string {
	origin, _ := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin)
	return origin
}

// keyDirectoryURL returns where the key directory is; empty: requests are not signed.
func (s *Signing) keyDirectoryURL() string {
	if !s.isUsed() {
		return ""
	}
	return s.keyDirectoryOrigin() + botauth.DirectoryPath
}

func checkSigningSettings(p *Project) *fieldProblem {
	s := &p.Agent.Signature
	for i, name := range s.KeyFiles {
		if name == "" {
			return newProjectFieldProblem(indexedFieldName("agent.signature.keys", i), "expected the name of a file")
		}
	}
	if d := time.Duration(s.SignatureTTL); d < botauth.MinLifetime || d > botauth.MaxLifetime {
		return newProjectFieldProblem("agent.signature.valid", "%v is out of range: expected %v to %v", s.SignatureTTL, Duration(botauth.MinLifetime), Duration(botauth.MaxLifetime))
	}
	if f := botauth.SignatureAgentForm(s.SignatureAgentForm); f != botauth.DictionaryForm && f != botauth.StringForm {
		return newProjectFieldProblem("agent.signature.agent_form", "%q is not a form: expected %s or %s", s.SignatureAgentForm, botauth.DictionaryForm, botauth.StringForm)
	}
	switch {
	case s.KeyDirectoryOrigin == "" && !s.isUsed():
		return nil
	case s.KeyDirectoryOrigin == "":
		return newProjectFieldProblem("agent.signature.directory", "where sites find the keys is not said: expected an origin on https, as https://bot.example.com")
	case !s.isUsed():
		return newProjectFieldProblem("agent.signature.keys", "no key is named to sign with: expected files, as decorum identity key makes them")
	}
	if _, err := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin); err != nil {
		return newProjectFieldProblem("agent.signature.directory", "%q: %v", s.KeyDirectoryOrigin, err)
	}
	return nil
}

// readKeys reads the keys; the first one signs. It opens their files by open.
func (s *Signing) readKeys(open OpenFunc) ([]*botauth.Key, error) {
	keys := make([]*botauth.Key, len(s.KeyFiles))
	nameByID := map[string]string{}
	for i, name := range s.KeyFiles {
		k, err := readPrivateKeyFile(open, name, botauth.ParseKey)
		if err != nil {
			return nil, usage.Errorf("%s: %w", indexedFieldName("agent.signature.keys", i), err)
		}
		if sameKeyFile := nameByID[k.ID()]; sameKeyFile != "" {
			return nil, usage.Errorf("%s: %s holds the same key as %s", indexedFieldName("agent.signature.keys", i), name, sameKeyFile)
		}
		keys[i], nameByID[k.ID()] = k, name
	}
	return keys, nil
}

// newSigner returns what signs the project's requests; nil: nothing does.
func (s *Signing) newSigner(open OpenFunc) (*botauth.Signer, error) {
	if !s.isUsed() {
		return nil, nil
	}
	keys, err := s.readKeys(open)
	if err != nil {
		return nil, err
	}
	signer, err := botauth.NewSigner(keys[0], s.KeyDirectoryOrigin, time.Duration(s.SignatureTTL))
	if err != nil {
		return nil, err
	}
	return signer.WithSignatureAgentForm(botauth.SignatureAgentForm(s.SignatureAgentForm))
}

// maxKeyFileBytes bounds the file of a key. One of Ed25519 has some 120 bytes.
const maxKeyFileBytes = 64 << 10

// readPrivateKeyFile reads a private key from a file that no other user may read.
func readPrivateKeyFile[K any](open OpenFunc, name string, parse func([]byte) (K, error)) (k K, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return k, fmt.Errorf("%s is not the file of a key", name) // opening a pipe would wait
	}
	f, err := open(name)
	if err != nil {
		return k, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return k, err
	case !info.Mode().IsRegular() || info.Size() > maxKeyFileBytes:
		return k, fmt.Errorf("%s is not the file of a key", name)
	case disk.ReadableByOthers(info):
		return k, fmt.Errorf("others may read the key in %s: chmod 600 it, and make a new one unless they have not", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFileBytes))
	if err != nil {
		return k, err
	}
	if k, err = parse(text); err != nil {
		return k, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// createSigningKeyFile writes a new key to a file that is not there yet.
func createSigningKeyFile(name string) (*botauth.Key, error) {
	k, err := botauth.GenerateKey()
	if err != nil {
		return nil, err
	}
	text, err := k.PrivatePEM()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usage.Errorf("%s is there already, and may be a key that is in use: name another file", name)
	}
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	return k, errors.Join(err, f.Sync(), f.Close())
}
