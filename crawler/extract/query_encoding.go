package extract

import (
	"bytes"
	"strconv"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// A queryEncoder writes the queries of a page's links in the encoding of the page, as browsers do (URL
// standard, "percent-encode after encoding"). It encodes as the Encoding standard says, which differs
// from golang.org/x/text in the cases that encodeRune and appendISO2022JP name. Private code points of
// GBK, GB18030 and Shift_JIS, and 19 rare characters of GBK, are as in golang.org/x/text.
type queryEncoder struct {
	encoding    encoding.Encoding
	encoder     *encoding.Encoder
	corrections map[rune]string // bytes of the characters that encoder does not encode as the standard does
	src, dst    [utf8.UTFMax]byte
}

// newQueryEncoder returns the encoder for links of a page in enc. It returns nil if they are in UTF-8:
// enc is nil, the replacement encoding or UTF-16 (Encoding standard, "get an output encoding").
func newQueryEncoder(enc encoding.Encoding) *queryEncoder {
	if enc == nil || enc == encoding.Replacement {
		return nil
	}
	if name, _ := htmlindex.Name(enc); name == "utf-16be" || name == "utf-16le" {
		return nil
	}
	q := &queryEncoder{encoding: enc, encoder: enc.NewEncoder()}
	switch enc {
	case japanese.ShiftJIS:
		q.corrections = shiftJISCorrections()
	case japanese.EUCJP:
		q.corrections = eucJPCorrections
	case japanese.ISO2022JP:
		q.encoder, q.corrections = japanese.EUCJP.NewEncoder(), iso2022JPCorrections()
	case traditionalchinese.Big5:
		q.corrections = big5Corrections()
	}
	return q
}

// encodeQuery returns ref with its query in the encoding of the page; path, host and fragment stay.
func (q *queryEncoder) encodeQuery(ref []byte) []byte {
	end := indexAnyOrEnd(ref, "#")
	start := bytes.IndexByte(ref[:end], '?') + 1
	if start == 0 || isPlainASCII(ref[start:end]) {
		return ref
	}
	// Drop what the parser of URLs drops, so that it does not get between the bytes of a character.
	query := ref[start:end]
	if end == len(ref) {
		query = bytes.TrimRightFunc(query, func(r rune) bool { return r <= ' ' })
	}
	query = bytes.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r // U+FFFD for invalid UTF-8
	}, query)
	encoded := append(make([]byte, 0, 3*len(ref)), ref[:start]...)
	if q.encoding == japanese.ISO2022JP {
		return q.appendISO2022JP(encoded, query)
	}
	for _, r := range string(query) {
		if b, ok := q.encodeRune(r); ok {
			encoded = appendQueryBytes(encoded, b)
		} else {
			encoded = appendUnencodable(encoded, r)
		}
	}
	return encoded
}

// isPlainASCII reports whether s has only printable ASCII characters and spaces, which every encoding of
// a page keeps.
func isPlainASCII(s []byte) bool {
	return !bytes.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// encodeRune returns r in the encoding of the page, and false if the encoding lacks r. The result is
// valid until the next call.
func (q *queryEncoder) encodeRune(r rune) (encoded []byte, ok bool) {
	if r < utf8.RuneSelf {
		return []byte{byte(r)}, true
	}
	if s, ok := q.corrections[r]; ok {
		return []byte(s), true
	}
	if table, ok := q.encoding.(*charmap.Charmap); ok {
		b, ok := table.EncodeRune(r)
		if !ok && r <= 0x9F { // a byte without a character is the control character of the same number
			b, ok = byte(r), table.DecodeByte(byte(r)) == utf8.RuneError
		}
		return []byte{b}, ok
	}
	q.encoder.Reset()
	n, _, err := q.encoder.Transform(q.dst[:], utf8.AppendRune(q.src[:0], r), true)
	switch encoded = q.dst[:n]; {
	case err != nil:
		return nil, false
	case q.encoding == traditionalchinese.Big5: // the standard does not write what HKSCS has added
		ok = encoded[0] >= 0xA1
	case q.encoding == japanese.EUCJP || q.encoding == japanese.ISO2022JP: // nor JIS X 0212
		ok = encoded[0] != 0x8F
	default:
		ok = true
	}
	return encoded, ok
}

// appendQueryBytes appends bytes of a query. It escapes those that a parser of URLs would not take for
// a part of the query, or would take for UTF-8.
func appendQueryBytes(dst, encoded []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range encoded {
		if c > ' ' && c <= '~' && c != '#' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// appendUnencodable appends a character that the encoding lacks: the escaped form of &#N; with its
// number.
func appendUnencodable(dst []byte, r rune) []byte {
	return append(strconv.AppendInt(append(dst, "%26%23"...), int64(r), 10), "%3B"...)
}

// Sequences that select a character set of ISO-2022-JP.
const (
	selectASCII   = "\x1B(B"
	selectRoman   = "\x1B(J"
	selectJIS0208 = "\x1B$B"
)

// appendISO2022JP appends query in ISO-2022-JP (Encoding standard §12.2.2), which golang.org/x/text
// writes with other character sets.
func (q *queryEncoder) appendISO2022JP(dst, query []byte) []byte {
	selected := selectASCII
	choose := func(set string) {
		if selected != set {
			dst, selected = appendQueryBytes(dst, []byte(set)), set
		}
	}
	for _, r := range string(query) {
		switch encoded, ok := q.encodeRune(r); {
		case r == 0x0E || r == 0x0F || r == 0x1B: // these would select a character set
			if selected == selectJIS0208 {
				choose(selectASCII)
			}
			dst = appendUnencodable(dst, utf8.RuneError)
		case r < utf8.RuneSelf:
			if selected == selectJIS0208 || r == '\\' || r == '~' { // the last two differ in Roman
				choose(selectASCII)
			}
			dst = appendQueryBytes(dst, encoded)
		case ok && len(encoded) == 1: // yen sign and overline
			choose(selectRoman)
			dst = appendQueryBytes(dst, encoded)
		case ok:
			choose(selectJIS0208)
			dst = appendQueryBytes(dst, []byte{encoded[0] &^ 0x80, encoded[1] &^ 0x80})
		default:
			if selected == selectJIS0208 {
				choose(selectASCII)
			}
			dst = appendUnencodable(dst, r)
		}
	}
	choose(selectASCII)
	return dst
}

// eucJPCorrections are those of EUC-JP: the yen sign and the overline are the bytes of ASCII that some
// fonts draw so, and the minus sign is the full-width one.
var eucJPCorrections = map[rune]string{'¥': `\`, '‾': "~", '−': "\xA1\xDD"}

// iso2022JPCorrections returns those of ISO-2022-JP, with the bytes of EUC-JP: as there, and half-width
// katakana are full-width ones.
var iso2022JPCorrections = sync.OnceValue(func() map[rune]string {
	const fullWidth = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
	m := map[rune]string{}
	for r, s := range eucJPCorrections {
		m[r] = s
	}
	half := '\uFF61'
	for _, r := range fullWidth {
		m[half], _ = japanese.EUCJP.NewEncoder().String(string(r))
		half++
	}
	return m
})

// shiftJISCorrections returns those of Shift_JIS: as of EUC-JP, the control character U+0080, and the
// extensions of IBM, which the standard writes with the bytes of IBM and not of NEC.
var shiftJISCorrections = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{'\u0080': "\x80", '¥': `\`, '‾': "~", '−': "\x81\x7C"}
	addCorrections(m, japanese.ShiftJIS, 0xFA, 0xFC, func(encoded string) bool {
		return encoded[0] == 0xED || encoded[0] == 0xEE
	})
	return m
})

// big5Corrections returns those of Big5: the standard writes a character that has several places with
// the bytes of the first, except for six that have their place in big5LastPlace.
var big5Corrections = sync.OnceValue(func() map[rune]string {
	const big5LastPlace = "═╞╡╪十卅"
	m := map[rune]string{}
	addCorrections(m, traditionalchinese.Big5, 0xA1, 0xFE, func(encoded string) bool { return true })
	for _, r := range big5LastPlace {
		delete(m, r)
	}
	return m
})

// addCorrections adds to m each character of enc whose first byte is in [from, to], with its first place
// there, if golang.org/x/text writes it with other bytes, about which isWrong reports true.
func addCorrections(m map[rune]string, enc encoding.Encoding, from, to int, isWrong func(encoded string) bool) {
	decoder, encoder := enc.NewDecoder(), enc.NewEncoder()
	seen := map[rune]bool{}
	for lead := from; lead <= to; lead++ {
		for trail := 0x40; trail <= 0xFE; trail++ {
			b := string([]byte{byte(lead), byte(trail)})
			s, _ := decoder.String(b)
			r, size := utf8.DecodeRuneInString(s)
			if r == utf8.RuneError || size != len(s) || seen[r] {
				continue
			}
			seen[r] = true
			if encoded, err := encoder.String(s); err == nil && encoded != b && isWrong(encoded) {
				m[r] = b
			}
		}
	}
}
