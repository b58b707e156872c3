package botauth

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// How long a signature may be valid. The profile recommends a day at most.
const (
	DefaultLifetime = 5 * time.Minute
	MinLifetime     = 10 * time.Second
	MaxLifetime     = 24 * time.Hour
)

// The headers of a signed request.
const (
	SignatureAgentHeader = "Signature-Agent"
	SignatureInputHeader = "Signature-Input"
	SignatureHeader      = "Signature"
)

// A Signer signs requests. Its methods may be called at the same time.
type Signer struct {
	key                *Key
	directoryOrigin    string // the origin of the key directory, as structured fields write strings
	lifetime           time.Duration
	signatureAgentForm SignatureAgentForm
}

// A SignatureAgentForm is how the header Signature-Agent is written.
type SignatureAgentForm string

// The forms of Signature-Agent.
const (
	// DictionaryForm is the form of the profile: a dictionary whose member has the label of
	// the signature.
	DictionaryForm SignatureAgentForm = "dictionary"
	// StringForm is the string form of earlier drafts. Verifiers that follow only those
	// drafts, such as web-bot-auth 0.1.3 for node, accept no other form.
	StringForm SignatureAgentForm = "string"
)

// WithSignatureAgentForm returns a copy of s that writes Signature-Agent in the given form.
func (s *Signer) WithSignatureAgentForm(f SignatureAgentForm) (*Signer, error) {
	if f != DictionaryForm && f != StringForm {
		return nil, fmt.Errorf("%q is not a form of Signature-Agent: expected %s or %s", f, DictionaryForm, StringForm)
	}
	other := *s
	other.signatureAgentForm = f
	return &other, nil
}

// NewSigner returns a Signer with a key that a site finds in the directory at an
// origin: see ParseKeyDirectoryOrigin. Its signatures are valid for so long, from MinLifetime to
// MaxLifetime; 0: DefaultLifetime.
func NewSigner(k *Key, directory string, lifetime time.Duration) (*Signer, error) {
	origin, err := ParseKeyDirectoryOrigin(directory)
	if err != nil {
		return nil, err
	}
	lifetime = cmp.Or(lifetime, DefaultLifetime)
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return nil, fmt.Errorf("a signature cannot be valid for %v: expected %v to %v", lifetime, MinLifetime, MaxLifetime)
	}
	return &Signer{key: k, directoryOrigin: `"` + origin + `"`, lifetime: lifetime, signatureAgentForm: DictionaryForm}, nil
}

// ParseKeyDirectoryOrigin returns the origin that a key directory is at, as requests name it.
// It returns an error unless s is an https URL of an origin and no more: what is not
// by TLS proves nothing.
func ParseKeyDirectoryOrigin(s string) (string, error) {
	u, err := decorum.ParseURL(s)
	if err != nil || strings.ContainsAny(s, "@?#") || u.Origin().Scheme() != "https" || strings.TrimSuffix(u.String(), "/") != u.Origin().String() {
		return "", errors.New("expected an origin on https and no path, as in https://bot.example.com")
	}
	return u.Origin().String(), nil
}

// signatureLabel is what a request calls its signature, and the member of Signature-Agent
// that belongs to it.
const signatureLabel = "sig1"

// Sign puts a signature of now into the header of a request to an authority: the
// host, in lower case, and the port unless it is the scheme's own (RFC 9421, section
// 2.2.3). What the header had of that kind is replaced. It costs some 25 µs.
//
// The signature covers the authority and the directory, which every proxy on the way
// leaves alone, and is for one request: a site may refuse a nonce that it knows.
func (s *Signer) Sign(h http.Header, authority string) {
	now := time.Now()
	id, value := `"signature-agent";key="`+signatureLabel+`"`, signatureLabel+"="+s.directoryOrigin
	if s.signatureAgentForm == StringForm {
		id, value = `"signature-agent"`, s.directoryOrigin
	}
	input, signature := s.key.sign([]component{
		{`"@authority"`, authority},
		{id, s.directoryOrigin},
	}, signatureParams("").addTime("created", now).addString("keyid", s.key.ID()).addString("alg", "ed25519").
		addTime("expires", now.Add(s.lifetime)).addString("nonce", newNonce()).addString("tag", "web-bot-auth"))
	h[SignatureAgentHeader] = []string{value}
	h[SignatureInputHeader] = []string{signatureLabel + "=" + input}
	h[SignatureHeader] = []string{signatureLabel + "=" + signature}
}

// newNonce returns what no other signature has: 64 bytes, as early drafts of the
// profile ask.
func newNonce() string {
	b := make([]byte, 64)
	_, _ = rand.Read(b) // it never fails
	return base64.StdEncoding.EncodeToString(b)
}
