-- The seen set of an origin is divided into buckets of about 200 fingerprints (linear hashing): when
-- the average exceeds that, one bucket is split. Redis stores a set of so many integers in eight bytes
-- each, and no call reads a long set. Field b is the number of buckets, c that of fingerprints.
local maxBucketSize = 200

-- bucketHash returns a number from the last decimal digits of a fingerprint.
local function bucketHash(fingerprint) return math.abs(tonumber(string.sub(fingerprint, -9))) end

-- floorPowerOfTwo returns the highest power of two that is at most n.
local function floorPowerOfTwo(n)
  local l = 1
  while 2 * l <= n do l = 2 * l end
  return l
end

local function bucketKey(o, i) return keyPrefix .. 's:' .. o.name .. ':' .. i end

-- bucketKeyOf returns the key of the bucket of a fingerprint.
local function bucketKeyOf(o, fingerprint)
  local n = math.max(1, getNumber(o, 'b'))
  local l, h = floorPowerOfTwo(n), bucketHash(fingerprint)
  local i = h % (2 * l)
  if i >= n then i = h % l end
  return bucketKey(o, i)
end

-- splitBucket adds a bucket, and moves into it about half of the fingerprints of one other.
local function splitBucket(o)
  local n = math.max(1, getNumber(o, 'b'))
  local l = floorPowerOfTwo(n)
  local from, to = bucketKey(o, n - l), bucketKey(o, n)
  for _, fingerprint in ipairs(call('SMEMBERS', from)) do
    if bucketHash(fingerprint) % (2 * l) == n then call('SMOVE', from, to, fingerprint) end
  end
  setField(o, 'b', n + 1)
end

-- isSeen reports whether the seen set of an origin has a fingerprint.
local function isSeen(o, fingerprint) return call('SISMEMBER', bucketKeyOf(o, fingerprint), fingerprint) == 1 end

-- addSeen adds a fingerprint that isSeen has not found.
local function addSeen(o, fingerprint)
  call('SADD', bucketKeyOf(o, fingerprint), fingerprint)
  addToField(o, 'c', 1)
  addToField(meta, 'seen', 1)
  if getNumber(o, 'c') > maxBucketSize * math.max(1, getNumber(o, 'b')) then splitBucket(o) end
end

-- addIfUnseen adds a fingerprint to the seen set. It returns false if the set has it already.
local function addIfUnseen(o, fingerprint)
  if isSeen(o, fingerprint) then return false end
  addSeen(o, fingerprint)
  return true
end
