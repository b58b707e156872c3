package authtest

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A SignatureParams has the parameters of a message's signature.
type SignatureParams struct {
	DirectoryOrigin   string // origin of the key directory
	CoveredComponents string // covered components, as listed
	KeyID, Nonce      string
	Created, Expires  time.Time
}

var (
	// agentRegexp also matches the form of early drafts, a string without a label.
	agentRegexp     = regexp.MustCompile(`^(?:([a-z0-9]+)=)?("[^"\\]*")$`)
	inputRegexp     = regexp.MustCompile(`^([a-z0-9]+)=(\(([^()]*)\)(.*))$`)
	signatureRegexp = regexp.MustCompile(`^([a-z0-9]+)=:([A-Za-z0-9+/]+=*):$`)
)

// VerifyRequest verifies the only signature of r, as its server received r, with the public key x
// (base64url, as x of a JWK) at the time now. It returns the parameters of the signature. It
// returns an error for a signature that is invalid at that time, or for components and parameters
// outside the profile.
func VerifyRequest(r *http.Request, x string, now time.Time) (s SignatureParams, err error) {
	agent, input, value := agentRegexp.FindStringSubmatch(singleHeader(r.Header, "Signature-Agent")),
		inputRegexp.FindStringSubmatch(singleHeader(r.Header, "Signature-Input")),
		signatureRegexp.FindStringSubmatch(singleHeader(r.Header, "Signature"))
	if agent == nil || input == nil || value == nil || agent[1] != "" && agent[1] != input[1] || value[1] != input[1] {
		return s, fmt.Errorf("no signature of one label: %q", r.Header)
	}
	if s, err = parseSignatureParams(input[4]); err != nil {
		return s, err
	}
	s.DirectoryOrigin, s.CoveredComponents = strings.Trim(agent[2], `"`), input[3]
	// Build the signature base from the components that the profile allows.
	base := ""
	for id := range strings.SplitSeq(s.CoveredComponents, " ") {
		if agent[1] == "" && id == `"signature-agent"` {
			base += id + ": " + agent[2] + "\n"
			continue
		}
		switch id {
		case `"@authority"`:
			base += id + ": " + strings.ToLower(r.Host) + "\n"
		case `"signature-agent";key="` + agent[1] + `"`:
			base += id + ": " + agent[2] + "\n"
		default:
			return s, fmt.Errorf("the component %s is not expected", id)
		}
	}
	base += `"@signature-params": ` + input[2]
	if err := verifyEd25519Signature(x, base, value[2]); err != nil {
		return s, err
	}
	if now.Before(s.Created) || now.After(s.Expires) {
		return s, fmt.Errorf("the signature is valid from %v to %v, and not at %v", s.Created, s.Expires, now)
	}
	return s, nil
}

// verifyEd25519Signature verifies the signature of a base. x is the public key in base64url;
// signature is in base64.
func verifyEd25519Signature(x, base, signature string) error {
	key, err := base64.RawURLEncoding.DecodeString(x)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("%q is not a public key", x)
	}
	bytes, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, []byte(base), bytes) {
		return errors.New("the signature is invalid")
	}
	return nil
}

// singleHeader returns the value of a header that occurs once, else "".
func singleHeader(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// parseSignatureParams parses the parameters that the profile requires.
func parseSignatureParams(params string) (s SignatureParams, err error) {
	for param := range strings.SplitSeq(strings.TrimPrefix(params, ";"), ";") {
		name, value, _ := strings.Cut(param, "=")
		switch text := strings.Trim(value, `"`); name {
		case "created", "expires":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return s, err
			}
			if at := time.Unix(n, 0); name == "created" {
				s.Created = at
			} else {
				s.Expires = at
			}
		case "keyid":
			s.KeyID = text
		case "nonce":
			s.Nonce = text
		case "alg", "tag":
			if want := map[string]string{"alg": "ed25519", "tag": "web-bot-auth"}[name]; text != want {
				return s, fmt.Errorf("%s is %q, want %q", name, text, want)
			}
		default:
			return s, fmt.Errorf("the parameter %s is not expected", name)
		}
	}
	if s.KeyID == "" || s.Created.IsZero() || s.Expires.IsZero() {
		return s, errors.New("created, expires and keyid are compulsory")
	}
	return s, nil
}
