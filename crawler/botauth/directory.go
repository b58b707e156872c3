package botauth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DirectoryPath is the path at which an origin serves its key directory, and DirectoryMediaType is
// the directory's media type.
const (
	DirectoryPath      = "/.well-known/http-message-signatures-directory"
	DirectoryMediaType = "application/http-message-signatures-directory+json"
)

// Lifetimes of a key directory. Verifiers may cache it for directoryMaxAge, which is how long they
// may miss a new key and accept an old one. Its own signatures are valid for
// directorySignatureLifetime.
const (
	directoryMaxAge            = time.Hour
	directorySignatureLifetime = 7 * 24 * time.Hour
)

// A KeySet is the content of a key directory (RFC 7517, section 5).
type KeySet struct {
	Keys []JWK `json:"keys"`
}

// MarshalDirectory returns the key directory with the public halves of keys, for a server of static
// files.
func MarshalDirectory(keys ...*Key) []byte {
	set := KeySet{make([]JWK, len(keys))}
	for i, k := range keys {
		set.Keys[i] = k.public
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // unreachable: a KeySet has only strings
	}
	return text
}

// A KeyDirectory serves the public keys of an origin. Each key signs the response, which proves
// that the server has the key, and for which authority. The authority is always that of the
// configured origin, not that of a request: a proxy may have changed the latter, and no client must
// be able to make the keys sign for another name.
type KeyDirectory struct {
	authority string // host and port of the origin
	keys      []*Key
}

// NewKeyDirectory returns the directory of keys at origin. It returns an error if
// ParseKeyDirectoryOrigin refuses origin.
func NewKeyDirectory(origin string, keys ...*Key) (*KeyDirectory, error) {
	origin, err := ParseKeyDirectoryOrigin(origin)
	if err != nil {
		return nil, err
	}
	return &KeyDirectory{strings.TrimPrefix(origin, "https://"), keys}, nil
}

// ServeHTTP answers a GET or HEAD of DirectoryPath.
func (d *KeyDirectory) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := MarshalDirectory(d.keys...)
	sum := sha256.Sum256(text)
	digest := "sha-256=" + encodeStructuredBytes(sum[:]) // RFC 9530, section 2
	inputs, signatures := d.sign(digest, time.Now())
	h := w.Header()
	h.Set("Content-Type", DirectoryMediaType)
	h.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(directoryMaxAge.Seconds())))
	h.Set("Content-Digest", digest)
	h.Set(SignatureInputHeader, inputs)
	h.Set(SignatureHeader, signatures)
	_, _ = w.Write(text) // an error means that the client has gone
}

// sign returns the values of Signature-Input and Signature, with one signature per key at the time
// now, for a directory with the given digest.
func (d *KeyDirectory) sign(digest string, now time.Time) (inputs, signatures string) {
	var in, out []string
	for i, k := range d.keys {
		input, signature := k.sign([]component{
			{`"@authority";req`, d.authority},
			{`"content-digest"`, digest},
		}, signatureParams("").addTime("created", now).addTime("expires", now.Add(directorySignatureLifetime)).
			addString("keyid", k.ID()).addString("tag", "http-message-signatures-directory"))
		name := fmt.Sprintf("binding%d=", i)
		in, out = append(in, name+input), append(out, name+signature)
	}
	return strings.Join(in, ", "), strings.Join(out, ", ")
}
