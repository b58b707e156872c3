package robots

import (
	"strings"
	"testing"
)

func TestHost(t *testing.T) {
	label := strings.Repeat("a", 63)                                     // as long as may be
	long := strings.Join([]string{label, label, label, label[:61]}, ".") // as long as may be
	for _, test := range []struct {
		name, value, want string // an empty want: the line is invalid
	}{
		{"HOST-06", "https://myhost.ru:8443", "https://myhost.ru:8443"},
		{"HOST-06/another scheme", "ftp://myhost.ru", ""},
		{"HOST-06/two schemes", "https://https://myhost.ru", ""},
		{"HOST-06/user", "user@myhost.ru", ""},
		{"HOST-07/nothing but the scheme", "https://", ""},
		{"HOST-07/path", "https://myhost.ru/", ""},
		{"HOST-08/largest", "myhost.ru:65535", "myhost.ru:65535"},
		{"HOST-08/too large", "myhost.ru:65536", ""},
		{"HOST-08/zeros", "myhost.ru:00", ""},
		{"HOST-08/two ports", "myhost.ru:80:80", ""},
		{"HOST-08/sign", "myhost.ru:+80", ""},
		{"HOST-09/one label", "localhost", "localhost"},
		{"HOST-09/longest label", label + ".ru", label + ".ru"},
		{"HOST-09/longer label", label + "a.ru", ""},
		{"HOST-09/longest", long, long},
		{"HOST-09/longer", long + "a", ""},
		{"HOST-09/outside ASCII", "пример.рф", ""},
		{"HOST-09/Punycode", "xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"},
		{"HOST-09/broken Punycode", "xn--a.ru", ""},
		{"HOST-09/address in hex", "0x7f.1", ""},
		{"HOST-09/address as one number", "2130706433", ""},
		{"HOST-09/number at the end", "a.1", ""},
		{"HOST-10/percent sign", "my%68ost.ru", ""},
		{"HOST-14/https by its own port", "https://MyHost.ru:443", "https://myhost.ru"},
		{"HOST-14/http by the other's port", "myhost.ru:443", "myhost.ru:443"},
		{"HOST-14/zeros before the port", "myhost.ru:0080", "myhost.ru"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := Parse([]byte("Host: "+test.value), Yandex).MainMirror()
			if got != test.want || ok != (test.want != "") {
				t.Errorf("Host: %s = %q, %v, want %q", test.value, got, ok, test.want)
			}
		})
	}
}
