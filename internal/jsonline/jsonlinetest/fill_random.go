// Package jsonlinetest makes random values, for tests that compare the output of jsonline with that
// of encoding/json.
package jsonlinetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"
)

// sampleTexts holds strings of every kind that JSON encodes differently.
var sampleTexts = []string{
	"", "GET", "http://a.test/?a=1&b=<2>", `quote " and \ slash`, "line\nand\ttab\x00\x1b\x7f", "über 漢字 \U0001f600",
	"separators \u2028 \u2029", "not UTF-8 \xff\xc3(", "cut \xe6\xbc",
}

// FillRandom sets what p points to, and all that it contains, to random or zero values. It panics
// if it finds a kind of value that it does not know.
func FillRandom(r *rand.Rand, p any) { fillRandomValue(r, reflect.ValueOf(p).Elem()) }

// fillRandomValue implements FillRandom for v.
func fillRandomValue(r *rand.Rand, v reflect.Value) {
	switch {
	case r.IntN(4) == 0:
		v.SetZero()
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMicro(r.Int64N(4e15)).UTC()))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillRandomValue(r, v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fillRandomValue(r, v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for _, f := range v.Fields() {
			fillRandomValue(r, f)
		}
	case v.Kind() == reflect.String:
		v.SetString(sampleTexts[r.IntN(len(sampleTexts))])
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(r.Int64N(1<<40) - 1<<20)
	default:
		panic(fmt.Sprintf("jsonlinetest: no value for %v", v.Type()))
	}
}
