package botauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// A component is a part of a message that a signature covers (RFC 9421, section 2): its identifier
// as written, and its value.
type component struct{ id, value string }

// signatureParams are the parameters of a signature (RFC 9421, section 2.3), as written after the
// list of components.
type signatureParams string

// addTime returns p with a parameter whose value is t in Unix seconds.
func (p signatureParams) addTime(name string, t time.Time) signatureParams {
	return p + signatureParams(";"+name+"="+strconv.FormatInt(t.Unix(), 10))
}

// addString returns p with a parameter. value must not contain quotes or backslashes, which would
// need escapes.
func (p signatureParams) addString(name, value string) signatureParams {
	return p + signatureParams(";"+name+`="`+value+`"`)
}

// sign returns the members of Signature-Input and Signature, without their label, that sign the
// covered components (RFC 9421, section 3.1).
func (k *Key) sign(covered []component, p signatureParams) (input, signature string) {
	ids := make([]string, len(covered))
	var base strings.Builder // the signature base of section 2.5
	for i, c := range covered {
		ids[i] = c.id
		base.WriteString(c.id + ": " + c.value + "\n")
	}
	input = "(" + strings.Join(ids, " ") + ")" + string(p)
	base.WriteString(`"@signature-params": ` + input)
	return input, encodeStructuredBytes(ed25519.Sign(k.private, []byte(base.String())))
}

// encodeStructuredBytes returns b as a byte sequence of structured fields (RFC 9651, section 3.3.5).
func encodeStructuredBytes(b []byte) string { return ":" + base64.StdEncoding.EncodeToString(b) + ":" }
