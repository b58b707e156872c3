package decorum

// Punycode (RFC 3492) for the fast path of international host names. Both ways
// work on labels as the DNS has them, so that the time they take, which is
// quadratic, is bounded.

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

// maxLabelBytes is the length of the longest label (RFC 1035 §2.3.4), in octets. No
// label has more runes.
const maxLabelBytes = 63

// A hostLabel is one label of a host name, as runes. It lives on the stack.
type hostLabel struct {
	runes     [maxLabelBytes]rune
	runeCount int
}

// insertRune puts r before the i-th rune. There must be room.
func (l *hostLabel) insertRune(i int, r rune) {
	copy(l.runes[i+1:l.runeCount+1], l.runes[i:l.runeCount])
	l.runes[i] = r
	l.runeCount++
}

// appendPunycode appends the Punycode of l, without "xn--" (RFC 3492 §6.3).
func appendPunycode(b []byte, l *hostLabel) []byte {
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

// decodePunycode puts what s, the part of a label behind "xn--", stands for
// into l, which is empty (RFC 3492 §6.2). It reports false for what is not in
// lower case, for ASCII alone, and for what is no Punycode.
func decodePunycode[T byteSeq](l *hostLabel, s T) bool {
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

// decodePunycodeDigit returns the value of a digit, punyBase for what is none.
func decodePunycodeDigit(c byte) int64 {
	switch {
	case 'a' <= c && c <= 'z':
		return int64(c - 'a')
	case '0' <= c && c <= '9':
		return int64(c-'0') + 26
	}
	return punyBase
}

// punyThreshold is t(j) of RFC 3492 §3.3 for k = j * punyBase.
func punyThreshold(k, bias int) int { return min(max(k-bias, punyTMin), punyTMax) }

// punyAdapt is the bias adaptation of RFC 3492 §6.1.
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
