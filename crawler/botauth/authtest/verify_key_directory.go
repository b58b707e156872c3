package authtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// A DirectoryKey is a key in a key directory, with the fields of its JWK.
type DirectoryKey struct{ Kty, Crv, Kid, X, Use string }

// directorySignatureRegexp matches a member of a directory's Signature-Input.
var directorySignatureRegexp = regexp.MustCompile(
	`^binding\d+=(\("@authority";req "content-digest"\);created=(\d+);expires=(\d+);keyid="([^"]+)";tag="http-message-signatures-directory")$`)

// VerifyKeyDirectory returns the keys of the directory in body. It returns an error unless the
// header h of the response has the digest of body, and a signature of each key for authority that
// is valid at the time now.
func VerifyKeyDirectory(h http.Header, body []byte, authority string, now time.Time) ([]DirectoryKey, error) {
	if got := h.Get("Content-Type"); got != "application/http-message-signatures-directory+json" {
		return nil, fmt.Errorf("it is a %s", got)
	}
	var set struct{ Keys []DirectoryKey }
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	if got := h.Get("Content-Digest"); got != digest {
		return nil, fmt.Errorf("the digest is %s, want %s", got, digest)
	}
	// Each key must have signed the response, in the order of the keys.
	inputs, signatures := strings.Split(h.Get("Signature-Input"), ", "), strings.Split(h.Get("Signature"), ", ")
	if len(inputs) != len(set.Keys) || len(signatures) != len(set.Keys) {
		return nil, fmt.Errorf("%d keys, signatures %q %q", len(set.Keys), inputs, signatures)
	}
	for i, k := range set.Keys {
		input, signature := directorySignatureRegexp.FindStringSubmatch(inputs[i]),
			signatureRegexp.FindStringSubmatch(signatures[i])
		if input == nil || signature == nil || input[4] != k.Kid {
			return nil, fmt.Errorf("the signature of %s: %q %q", k.Kid, inputs[i], signatures[i])
		}
		base := `"@authority";req: ` + authority + "\n" + `"content-digest": ` + digest + "\n" +
			`"@signature-params": ` + input[1]
		if err := verifyEd25519Signature(k.X, base, signature[2]); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Kid, err)
		}
		// The numbers have the same length, so comparing the strings compares the numbers.
		if at := fmt.Sprint(now.Unix()); at < input[2] || at >= input[3] {
			return nil, fmt.Errorf("%s: the signature is valid from %s to %s, and not at %s",
				k.Kid, input[2], input[3], at)
		}
	}
	return set.Keys, nil
}
