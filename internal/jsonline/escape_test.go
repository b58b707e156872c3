package jsonline_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// TestEscape: whatever the text, the JSON contains no control character and none that changes the
// direction of text, and its meaning is unchanged.
func TestEscape(t *testing.T) {
	var all []rune
	for r := rune(0); r < 0x3000; r++ {
		all = append(all, r)
	}
	text := string(all) + "\U0001F600\\u202e"
	o := jsonline.NewObjectBuilder(nil)
	o.String("text", text)
	line, err := o.Line()
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	if err := jsonline.NewEscapingEncoder(&encoded).Encode(map[string]string{"text": text}); err != nil {
		t.Fatal(err)
	}
	for _, got := range [][]byte{line, encoded.Bytes()} {
		for _, r := range string(bytes.TrimSuffix(got, []byte("\n"))) {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("the JSON contains %U", r)
			}
		}
		var back struct{ Text string }
		if err := json.Unmarshal(got, &back); err != nil || back.Text != text {
			t.Errorf("the meaning has changed: %v", err)
		}
	}
	plain := []byte(`{"a":"\u00e9 <b>"}`)
	if got := jsonline.EscapeControlChars(plain); &got[0] != &plain[0] {
		t.Error("JSON without such characters was copied")
	}
}
