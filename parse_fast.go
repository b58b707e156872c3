package decorum

import "strings"

// resolveFast resolves the most common links: those whose bytes appear unchanged in the canonical
// URL. It reads ref once and copies at most once. It reports false whenever the full parser might
// give another result.
func resolveFast[T byteSeq](base URL, ref T) (u URL, ok bool) {
	if len(base.s)+len(ref) > maxURLBytes {
		return URL{}, false
	}
	// An absolute link is canonical as it is, up to the fragment.
	if path := canonicalOriginLen(base, ref); path > 0 {
		end, ok := scanPathAndQuery(ref, path+1)
		return URL{s: string(ref[:end]), pathStart: uint32(path)}, ok
	}
	if base.IsZero() {
		return URL{}, false
	}
	if len(ref) == 0 || ref[0] == '#' {
		return base, true
	}
	// A relative link replaces the end of base: the result is base[:baseEnd] + ref[refStart:end].
	var baseEnd, refStart, end int
	switch ref[0] {
	case '/':
		if len(ref) > 1 && ref[1] == '/' { // a host follows: left to the full parser
			return URL{}, false
		}
		baseEnd = int(base.pathStart)
		end, ok = scanPathAndQuery(ref, 1)
	case '?':
		baseEnd = base.pathEnd()
		end, ok = scanNormalQuery(ref, 1)
	default:
		baseEnd, refStart = resolveLeadingDotSegments(base, ref)
		end, ok = scanPathAndQuery(ref, refStart)
	}
	if !ok {
		return URL{}, false
	}
	return URL{s: concat(base.s[:baseEnd], ref[refStart:end]), pathStart: base.pathStart}, true
}

// concat returns a and b as one string. Up to 256 bytes are joined on the stack, so that the result
// is the only allocation.
func concat[T byteSeq](a string, b T) string {
	var buf [256]byte
	return string(append(append(buf[:0], a...), b...))
}

// canonicalOriginLen returns the index of the path in ref if ref begins with a canonical origin and
// a slash. It returns 0 if not, and for origins that are costly to check: those with a port, an IP
// address or unusual Punycode. An origin equal to that of base needs no check.
func canonicalOriginLen[T byteSeq](base URL, ref T) (path int) {
	if n := int(base.pathStart); n > 0 && len(ref) > n && ref[n] == '/' && string(ref[:n]) == base.s[:n] {
		return n
	}
	host := hostStart(ref)
	if host == 0 {
		return 0
	}
	start := host // start of the current label
	for i := host; i < len(ref); i++ {
		c := ref[i]
		if inClass(c, inHostname) || c == '-' {
			continue
		}
		// The label ref[start:i] ends here.
		if label := ref[start:i]; len(label) >= len("xn--") && string(label[:4]) == "xn--" &&
			!isStablePunycode(label[4:]) {
			return 0
		}
		switch {
		case c == '.':
			start = i + 1
		case c == '/' && ref[start] > '9' && i-host <= maxHostBytes: // the last label is a name, and not empty
			return i
		default:
			return 0
		}
	}
	return 0
}

// hostStart returns the index of the host in ref, or 0 if ref does not begin with a canonical scheme.
func hostStart[T byteSeq](ref T) int {
	switch {
	case len(ref) > 8 && string(ref[:8]) == "https://":
		return 8
	case len(ref) > 7 && string(ref[:7]) == "http://":
		return 7
	case len(ref) > 6 && string(ref[:6]) == "ftp://":
		return 6
	}
	return 0
}

// scanPathAndQuery scans path and query in ref from i, the start of a segment, and returns where
// they end: at the fragment or the end of ref. It reports false if they are not canonical.
func scanPathAndQuery[T byteSeq](ref T, i int) (end int, ok bool) {
	segment := i
	for ; i < len(ref); i++ {
		c := ref[i]
		if inClass(c, inSegment) {
			continue
		}
		switch {
		case c == '/' && !isDotSegment(ref[segment:i]):
			segment = i + 1
		case c == ':' && segment > 0: // in the first segment it may end a scheme
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '?' && !isDotSegment(ref[segment:i]):
			return scanNormalQuery(ref, i+1)
		case c == '#':
			return i, !isDotSegment(ref[segment:i])
		default:
			return 0, false
		}
	}
	return i, !isDotSegment(ref[segment:])
}

// scanNormalQuery is scanPathAndQuery for a query that continues at i.
func scanNormalQuery[T byteSeq](ref T, i int) (end int, ok bool) {
	for ; i < len(ref); i++ {
		c := ref[i]
		switch {
		case inClass(c, inQuery):
		case c == '%' && isNormalEscape(ref[i:]):
			i += len("2F")
		case c == '#':
			return i, true
		default:
			return 0, false
		}
	}
	return i, true
}

// isDotSegment reports whether segment is "." or "..".
func isDotSegment[T byteSeq](segment T) bool {
	n := len(segment)
	return n == 1 && segment[0] == '.' || n == 2 && segment[0] == '.' && segment[1] == '.'
}

// isNormalEscape reports whether s, which begins with a percent sign, begins with an escape in normal
// form: upper case digits, and not of an unreserved character.
func isNormalEscape[T byteSeq](s T) bool {
	return len(s) >= len("%2F") && inClass(s[1], hexDigit) && inClass(s[2], hexDigit) &&
		s[1] < 'a' && s[2] < 'a' && !inClass(hexValue(s[1])<<4|hexValue(s[2]), unreserved)
}

// resolveLeadingDotSegments resolves the segments "." and ".." at the beginning of ref. It returns
// the end of the directory in base, and the index in ref of the part to append to it.
func resolveLeadingDotSegments[T byteSeq](base URL, ref T) (baseEnd, refStart int) {
	baseEnd = directoryEnd(base.s, int(base.pathStart), base.pathEnd())
	for {
		switch rest := ref[refStart:]; {
		case len(rest) >= 2 && rest[0] == '.' && rest[1] == '/':
			refStart += len("./")
		case len(rest) >= 3 && rest[0] == '.' && rest[1] == '.' && rest[2] == '/':
			refStart += len("../")
			baseEnd = parentDirectoryEnd(base.s, int(base.pathStart), baseEnd)
		default:
			return baseEnd, refStart
		}
	}
}

// pathEnd returns the index in u.s at which the path ends and the query, if there is one, begins.
func (u URL) pathEnd() int {
	if i := strings.IndexByte(u.s, '?'); i >= 0 {
		return i
	}
	return len(u.s)
}
