package project

import (
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Signing says with which keys the crawl signs its requests, so that sites can tell its requests
// from those of an impostor with the same User-Agent. Without keys, the requests are unsigned.
type Signing struct {
	KeyFiles           []string `yaml:"keys"`      // key files; the first key signs, the key directory lists all
	KeyDirectoryOrigin string   `yaml:"directory"` // origin of the key directory
	SignatureTTL       Duration `yaml:"valid"`     // how long a signature is valid after the request is sent
	// form of the Signature-Agent header: dictionary, or string, for sites whose verifiers know only
	// the early drafts of Web Bot Auth
	SignatureAgentForm string `yaml:"agent_form"`
}

// isUsed reports whether the crawl signs its requests.
func (s *Signing) isUsed() bool { return len(s.KeyFiles) > 0 }

// NormalizedKeyDirectoryOrigin returns the normalized origin of the key directory. The project must
// have passed Check.
func (s *Signing) NormalizedKeyDirectoryOrigin() string {
	origin, _ := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin)
	return origin
}

// KeyDirectoryURL returns the URL of the key directory, or "" if requests are unsigned.
func (s *Signing) KeyDirectoryURL() string {
	if !s.isUsed() {
		return ""
	}
	return s.NormalizedKeyDirectoryOrigin() + botauth.DirectoryPath
}

// checkSigningSettings checks agent.signature. It does not read the key files.
func checkSigningSettings(p *Project, found *problemCollector) {
	s := &p.Agent.Signature
	for i, name := range s.KeyFiles {
		if name == "" {
			found.add(indexedFieldName("agent.signature.keys", i), "expected the name of a file")
		}
	}
	if d := time.Duration(s.SignatureTTL); d < botauth.MinLifetime || d > botauth.MaxLifetime {
		found.add("agent.signature.valid", "%v is out of range: expected %v to %v", s.SignatureTTL,
			Duration(botauth.MinLifetime), Duration(botauth.MaxLifetime))
	}
	// Keys and directory need each other: sites verify a signature with a key from the directory.
	switch {
	case s.KeyDirectoryOrigin == "" && !s.isUsed():
		return
	case s.KeyDirectoryOrigin == "":
		found.add("agent.signature.directory",
			"sites cannot find the keys: expected an https origin, as https://bot.example.com")
	case !s.isUsed():
		found.add("agent.signature.keys",
			"no key to sign with: expected a file, as decorum identity key makes one")
	}
	if _, err := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin); err != nil {
		found.add("agent.signature.directory", "%q: %v", s.KeyDirectoryOrigin, err)
	}
}

// ReadKeys reads the keys from the files in KeyFiles, which it opens with open. The first key is
// the one that signs. Two files with the same key are a *usage.Error, like an unreadable file.
func (s *Signing) ReadKeys(open inputfile.OpenFunc) ([]*botauth.Key, error) {
	keys := make([]*botauth.Key, len(s.KeyFiles))
	nameByID := map[string]string{}
	for i, name := range s.KeyFiles {
		k, err := inputfile.ReadPrivateKey(open, name, botauth.ParseKey)
		if err != nil {
			return nil, usage.Errorf("%s: %w", indexedFieldName("agent.signature.keys", i), err)
		}
		if sameKeyFile := nameByID[k.ID()]; sameKeyFile != "" {
			return nil, usage.Errorf("%s: %s holds the same key as %s",
				indexedFieldName("agent.signature.keys", i), name, sameKeyFile)
		}
		keys[i], nameByID[k.ID()] = k, name
	}
	return keys, nil
}

// NewSigner returns the signer of the project's requests, or nil if the project has no keys. It
// opens the key files with open.
func (s *Signing) NewSigner(open inputfile.OpenFunc) (*botauth.Signer, error) {
	if !s.isUsed() {
		return nil, nil
	}
	keys, err := s.ReadKeys(open)
	if err != nil {
		return nil, err
	}
	signer, err := botauth.NewSigner(keys[0], s.KeyDirectoryOrigin, time.Duration(s.SignatureTTL))
	if err != nil {
		return nil, err
	}
	return signer.WithSignatureAgentForm(botauth.SignatureAgentForm(s.SignatureAgentForm))
}
