package decorum

// This file implements Punycode (RFC 3492) for the fast path of international host names. Encoder
// and decoder take quadratic time, which is bounded because they accept only labels of up to
// maxLabelBytes.

// The parameters of RFC 3492 §5.
const (
	punyBase    = 36
	punyTMin    = 1
	punyTMax    = 26
	punySkew    = 38
	punyDamp    = 700
	punyBias    = 72
	punyInitial = 0x80
)

// maxLabelBytes is the maximum length of a label (RFC 1035 §2.3.4), in octets, and therefore also in
// runes.
const maxLabelBytes = 63

// A hostLabel is one label of a host name, as runes. It has a fixed size, so that it stays on the
// stack.
type hostLabel struct {
	runes     [maxLabelBytes]rune
	runeCount int
}

// insertRune inserts r before the i-th rune. l must have fewer than maxLabelBytes runes.
func (l *hostLabel) insertRune(i int, r rune) {
	copy(l.runes[i+1:l.runeCount+1], l.runes[i:l.runeCount])
	l.runes[i] = r
	l.runeCount++
}

// appendPunycode appends the Punycode of l, without "xn--" (RFC 3492 §6.3).
func appendPunycode(b []byte, l *hostLabel) []byte {
	// The ASCII runes come first, then a hyphen.
	runes := l.runes[:l.runeCount]
	basic := 0
	for _, r := range runes {
		if r < punyInitial {
			b = append(b, byte(r))
			basic++
		}
	}
	if basic > 0 {
		b = append(b, '-')
	}
	// The other runes follow in order of their value, each as the distance (delta) of its value and
	// position from the rune before.
	n, delta, bias := rune(punyInitial), 0, punyBias
	for done := basic; done < len(runes); {
		next := rune(0x10FFFF)
		for _, r := range runes {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1) // at most 0x10FFFF * maxLabelBytes: fits in 31 bits
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			b = appendPunycodeDelta(b, delta, bias)
			bias = punyAdapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return b
}

// appendPunycodeDelta appends delta as a generalized variable-length integer.
func appendPunycodeDelta(b []byte, delta, bias int) []byte {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	for k := punyBase; ; k += punyBase {
		t := punyThreshold(k, bias)
		if delta < t {
			return append(b, digits[delta])
		}
		b = append(b, digits[t+(delta-t)%(punyBase-t)])
		delta = (delta - t) / (punyBase - t)
	}
}

// decodePunycode decodes s, the part of a label after "xn--", into l, which must be empty (RFC 3492
// §6.2). It reports false for upper case letters, for a label of ASCII alone and for invalid
// Punycode.
func decodePunycode[T byteSeq](l *hostLabel, s T) bool {
	// The ASCII runes stand before the last hyphen.
	pos := 0
	for i := range len(s) {
		if s[i] == '-' {
			pos = i + 1
		}
	}
	if len(s) > maxLabelBytes || pos == 1 || pos == len(s) {
		return false
	}
	for i := range pos - 1 {
		l.insertRune(l.runeCount, rune(s[i]))
	}
	// Each delta after it gives the value and the position of one more rune.
	n, i, bias := int64(punyInitial), int64(0), punyBias
	for basic := l.runeCount; pos < len(s); {
		old, w := i, int64(1)
		for k := punyBase; ; k += punyBase {
			digit := int64(punyBase)
			if pos < len(s) {
				digit = decodePunycodeDigit(s[pos])
			}
			pos++
			i += digit * w
			if digit == punyBase || i > 0x10FFFF*(maxLabelBytes+1) {
				return false
			}
			t := int64(punyThreshold(k, bias))
			if digit < t {
				break
			}
			w *= punyBase - t
		}
		points := int64(l.runeCount + 1)
		bias = punyAdapt(int(i-old), l.runeCount+1, l.runeCount == basic)
		n += i / points
		i %= points
		if n > 0x10FFFF {
			return false
		}
		l.insertRune(int(i), rune(n))
		i++
	}
	return true
}

// decodePunycodeDigit returns the value of the digit c, or punyBase if c is not a digit.
func decodePunycodeDigit(c byte) int64 {
	switch {
	case 'a' <= c && c <= 'z':
		return int64(c - 'a')
	case '0' <= c && c <= '9':
		return int64(c-'0') + 26
	}
	return punyBase
}

// punyThreshold returns t(j) of RFC 3492 §3.3 for k = j * punyBase.
func punyThreshold(k, bias int) int { return min(max(k-bias, punyTMin), punyTMax) }

// punyAdapt returns the bias for the next delta (RFC 3492 §6.1).
func punyAdapt(delta, points int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punyBase-punyTMin)*punyTMax/2; k += punyBase {
		delta /= punyBase - punyTMin
	}
	return k + (punyBase-punyTMin+1)*delta/(delta+punySkew)
}
