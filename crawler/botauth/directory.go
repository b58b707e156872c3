package botauth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DirectoryPath is where an origin serves its key directory, and DirectoryMediaType is
// its media type.
const (
	DirectoryPath      = "/.well-known/http-message-signatures-directory"
	DirectoryMediaType = "application/http-message-signatures-directory+json"
)

// How long verifiers may keep a directory, which is how soon a new key is known to
// them and an old one is not, and how long its own signatures hold.
const (
	directoryMaxAge            = time.Hour
	directorySignatureLifetime = 7 * 24 * time.Hour
)

// A KeySet is what is in a key directory (RFC 7517, section 5).
type KeySet struct {
	Keys []JWK `json:"keys"`
}

// MarshalDirectory returns the key directory of the public halves of keys, for a
// server that serves files.
func MarshalDirectory(keys ...*Key) []byte {
	set := KeySet{make([]JWK, len(keys))}
	for i, k := range keys {
		set.Keys[i] = k.public
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // it is made of strings
	}
	return text
}

// A KeyDirectory serves the keys of an origin. Each signs the answer, which proves that
// who serves it has them, and for which authority: that of the origin, whatever a
// request says. A proxy in front may have changed that, and nobody must be able to
// have the keys sign for a name that is not theirs.
type KeyDirectory struct {
	authority string
	keys      []*Key
}

// NewKeyDirectory returns the directory of keys at an origin: see ParseKeyDirectoryOrigin.
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
	_, _ = w.Write(text) // who has gone away needs no answer
}

// sign returns a signature of each key, at a time, over a directory of that digest.
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
