package botauth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/decorum-crawler/decorum/internal/ed25519pem"
)

// A Key is an Ed25519 key pair for signing requests.
type Key struct {
	private ed25519.PrivateKey // a secret
	public  JWK
}

// A JWK is a public key as key directories contain it (RFC 8037, section 2).
type JWK struct {
	Type  string `json:"kty"` // OKP
	Curve string `json:"crv"` // Ed25519
	ID    string `json:"kid"` // see Key.ID
	X     string `json:"x"`   // the key, in base64url
	Use   string `json:"use"` // sig
}

// exampleKeyID is the ID of the example key in RFC 9421, Appendix B.1.4.
const exampleKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

// GenerateKey returns a new key.
func GenerateKey() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return newKeyFromPrivate(private), nil
}

// ParseKey parses a private key in PEM (PKCS #8, RFC 8410), as written by openssl genpkey
// -algorithm ed25519. Its errors do not repeat any of text. It refuses the example key of RFC 9421,
// whose private half is public.
func ParseKey(text []byte) (*Key, error) {
	private, err := ed25519pem.ParsePrivate(text)
	if err != nil {
		return nil, err
	}
	k := newKeyFromPrivate(private)
	if k.ID() == exampleKeyID {
		return nil, errors.New("the key is the example of RFC 9421, which everybody has: make one of your own")
	}
	return k, nil
}

func newKeyFromPrivate(private ed25519.PrivateKey) *Key {
	x := base64.RawURLEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	return &Key{private, JWK{Type: "OKP", Curve: "Ed25519", ID: thumbprint(x), X: x, Use: "sig"}}
}

// thumbprint returns the JWK thumbprint of the public key x, with SHA-256 in base64url (RFC 7638,
// section 3; RFC 8037, appendix A.3).
func thumbprint(x string) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ID returns the name of the key in signatures (keyid): its JWK thumbprint.
func (k *Key) ID() string { return k.public.ID }

// PrivatePEM returns the private key in the form that ParseKey reads. It is a secret.
func (k *Key) PrivatePEM() ([]byte, error) { return ed25519pem.MarshalPrivate(k.private) }
