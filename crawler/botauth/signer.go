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

// Lifetimes of a signature. The profile recommends at most a day.
const (
	DefaultLifetime = 5 * time.Minute
	MinLifetime     = 10 * time.Second
	MaxLifetime     = 24 * time.Hour
)

// Headers of a signed request.
const (
	SignatureAgentHeader = "Signature-Agent"
	SignatureInputHeader = "Signature-Input"
	SignatureHeader      = "Signature"
)

// A Signer signs requests. Its methods are safe for concurrent use.
type Signer struct {
	key                *Key
	directoryOrigin    string // origin of the key directory, quoted as in structured fields
	lifetime           time.Duration
	signatureAgentForm SignatureAgentForm
}

// A SignatureAgentForm is the syntax of the header Signature-Agent.
type SignatureAgentForm string

// Forms of Signature-Agent.
const (
	// DictionaryForm is the form of the profile: a dictionary whose member has the label of
	// the signature.
	DictionaryForm SignatureAgentForm = "dictionary"
	// StringForm is the string form of earlier drafts. Verifiers that follow only those
	// drafts, such as web-bot-auth 0.1.3 for node, accept no other form.
	StringForm SignatureAgentForm = "string"
)

// WithSignatureAgentForm returns a copy of s that writes Signature-Agent in the form f. It returns
// an error if f is unknown.
func (s *Signer) WithSignatureAgentForm(f SignatureAgentForm) (*Signer, error) {
	if f != DictionaryForm && f != StringForm {
		return nil, fmt.Errorf("%q is not a form of Signature-Agent: expected %s or %s", f, DictionaryForm, StringForm)
	}
	other := *s
	other.signatureAgentForm = f
	return &other, nil
}

// NewSigner returns a Signer for k, which sites find in the key directory at the origin directory.
// Signatures are valid for lifetime, from MinLifetime to MaxLifetime; 0 is DefaultLifetime. It
// returns an error if lifetime is out of range, or if ParseKeyDirectoryOrigin refuses directory.
func NewSigner(k *Key, directory string, lifetime time.Duration) (*Signer, error) {
	origin, err := ParseKeyDirectoryOrigin(directory)
	if err != nil {
		return nil, err
	}
	lifetime = cmp.Or(lifetime, DefaultLifetime)
	if lifetime < MinLifetime || lifetime > MaxLifetime {
		return nil, fmt.Errorf("a signature cannot be valid for %v: expected %v to %v",
			lifetime, MinLifetime, MaxLifetime)
	}
	return &Signer{key: k, directoryOrigin: `"` + origin + `"`, lifetime: lifetime, signatureAgentForm: DictionaryForm},
		nil
}

// ParseKeyDirectoryOrigin returns the origin of a key directory in its normalized form. It returns
// an error unless s is an https URL with nothing but an origin: a directory without TLS would prove
// nothing.
func ParseKeyDirectoryOrigin(s string) (string, error) {
	u, err := decorum.ParseURL(s)
	if err != nil || strings.ContainsAny(s, "@?#") || u.Origin().Scheme() != "https" ||
		strings.TrimSuffix(u.String(), "/") != u.Origin().String() {
		return "", errors.New("expected an origin on https and no path, as in https://bot.example.com")
	}
	return u.Origin().String(), nil
}

// signatureLabel is the label of a request's signature, and of the corresponding member of
// Signature-Agent.
const signatureLabel = "sig1"

// Sign adds a signature with the current time to h, the header of a request to authority: the host
// in lower case, and the port unless it is the scheme's default (RFC 9421, section 2.2.3). It
// replaces earlier signatures in h. It takes about 25 µs.
//
// The signature covers the authority and the key directory, which proxies do not change. It is
// valid for one request: a site may refuse a nonce that it has seen.
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

// newNonce returns a unique nonce of 64 random bytes, the length that early drafts of the profile
// require.
func newNonce() string {
	b := make([]byte, 64)
	_, _ = rand.Read(b) // Read never fails
	return base64.StdEncoding.EncodeToString(b)
}
