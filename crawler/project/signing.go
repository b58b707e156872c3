package project

import (
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/internal/inputfile"
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

// NormalizedKeyDirectoryOrigin returns the origin of the key directory, of a project that has been checked.
func (s *Signing) NormalizedKeyDirectoryOrigin() string {
	origin, _ := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin)
	return origin
}

// KeyDirectoryURL returns where the key directory is; empty: requests are not signed.
func (s *Signing) KeyDirectoryURL() string {
	if !s.isUsed() {
		return ""
	}
	return s.NormalizedKeyDirectoryOrigin() + botauth.DirectoryPath
}

func checkSigningSettings(p *Project) *FieldProblem {
	s := &p.Agent.Signature
	for i, name := range s.KeyFiles {
		if name == "" {
			return NewFieldProblem(indexedFieldName("agent.signature.keys", i), "expected the name of a file")
		}
	}
	if d := time.Duration(s.SignatureTTL); d < botauth.MinLifetime || d > botauth.MaxLifetime {
		return NewFieldProblem("agent.signature.valid", "%v is out of range: expected %v to %v", s.SignatureTTL, Duration(botauth.MinLifetime), Duration(botauth.MaxLifetime))
	}
	if f := botauth.SignatureAgentForm(s.SignatureAgentForm); f != botauth.DictionaryForm && f != botauth.StringForm {
		return NewFieldProblem("agent.signature.agent_form", "%q is not a form: expected %s or %s", s.SignatureAgentForm, botauth.DictionaryForm, botauth.StringForm)
	}
	switch {
	case s.KeyDirectoryOrigin == "" && !s.isUsed():
		return nil
	case s.KeyDirectoryOrigin == "":
		return NewFieldProblem("agent.signature.directory", "where sites find the keys is not said: expected an origin on https, as https://bot.example.com")
	case !s.isUsed():
		return NewFieldProblem("agent.signature.keys", "no key is named to sign with: expected files, as decorum identity key makes them")
	}
	if _, err := botauth.ParseKeyDirectoryOrigin(s.KeyDirectoryOrigin); err != nil {
		return NewFieldProblem("agent.signature.directory", "%q: %v", s.KeyDirectoryOrigin, err)
	}
	return nil
}

// ReadKeys reads the keys; the first one signs. It opens their files by open.
func (s *Signing) ReadKeys(open inputfile.OpenFunc) ([]*botauth.Key, error) {
	keys := make([]*botauth.Key, len(s.KeyFiles))
	nameByID := map[string]string{}
	for i, name := range s.KeyFiles {
		k, err := inputfile.ReadPrivateKey(open, name, botauth.ParseKey)
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

// NewSigner returns what signs the project's requests; nil: nothing does.
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
