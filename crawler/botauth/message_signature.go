package botauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// A component is a part of a message that a signature covers (RFC 9421, section 2):
// its identifier, as it is written, and its value.
type component struct{ id, value string }

// signatureParams are the parameters of a signature (RFC 9421, section 2.3), as they are
// written behind the list of components.
type signatureParams string

func (p signatureParams) addTime(name string, t time.Time) signatureParams {
	return p + signatureParams(";"+name+"="+strconv.FormatInt(t.Unix(), 10))
}

// addString adds a parameter whose value needs no escapes: it has neither quotes nor
// backslashes.
func (p signatureParams) addString(name, value string) signatureParams {
	return p + signatureParams(";"+name+`="`+value+`"`)
}

// sign returns the members of Signature-Input and Signature, without their label,
// for a message with these components (RFC 9421, section 3.1).
func (k *Key) sign(covered []component, p signatureParams) (input, signature string) {
	ids := make([]string, len(covered))
	var base strings.Builder // section 2.5
	for i, c := range covered {
		ids[i] = c.id
		base.WriteString(c.id + ": " + c.value + "\n")
	}
	input = "(" + strings.Join(ids, " ") + ")" + string(p)
	base.WriteString(`"@signature-params": ` + input)
	return input, encodeStructuredBytes(ed25519.Sign(k.private, []byte(base.String())))
}

// encodeStructuredBytes writes bytes as structured fields do (RFC 9651, section 3.3.5).
func encodeStructuredBytes(b []byte) string { return ":" + base64.StdEncoding.EncodeToString(b) + ":" }
