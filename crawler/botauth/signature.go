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

// params are the parameters of a signature (RFC 9421, section 2.3), as they are
// written behind the list of components.
type params string

func (p params) moment(name string, t time.Time) params {
	return p + params(";"+name+"="+strconv.FormatInt(t.Unix(), 10))
}

// text adds a parameter whose value needs no escapes: it has neither quotes nor
// backslashes.
func (p params) text(name, value string) params {
	return p + params(";"+name+`="`+value+`"`)
}

// sign returns the members of Signature-Input and Signature, without their label,
// for a message with these components (RFC 9421, section 3.1).
func (k *Key) sign(covered []component, p params) (input, signature string) {
	ids := make([]string, len(covered))
	var base strings.Builder // section 2.5
	for i, c := range covered {
		ids[i] = c.id
		base.WriteString(c.id + ": " + c.value + "\n")
	}
	input = "(" + strings.Join(ids, " ") + ")" + string(p)
	base.WriteString(`"@signature-params": ` + input)
	return input, bytesOf(ed25519.Sign(k.private, []byte(base.String())))
}

// bytesOf writes bytes as structured fields do (RFC 9651, section 3.3.5).
func bytesOf(b []byte) string { return ":" + base64.StdEncoding.EncodeToString(b) + ":" }
