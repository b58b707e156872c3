-- The seen set of an origin is split into sets of about two hundred fingerprints,
-- one more at a time (linear hashing): a set of so many integers takes eight bytes
-- for each, and no call walks a long one.
local maxBucketSize = 200

local function bucketHash(fingerprint) return math.abs(tonumber(string.sub(fingerprint, -9))) end

-- floorPowerOfTwo returns the highest power of two that is not above n.
local function floorPowerOfTwo(n)
  local l = 1
  while 2 * l <= n do l = 2 * l end
  return l
end

local function bucketKey(o, i) return keyPrefix .. 's:' .. o.name .. ':' .. i end

local function bucketKeyOf(o, fingerprint)
  local n = math.max(1, getNumber(o, 'b'))
  local l, h = floorPowerOfTwo(n), bucketHash(fingerprint)
  local i = h % (2 * l)
  if i >= n then i = h % l end
  return bucketKey(o, i)
end

local function splitBucket(o)
  local n = math.max(1, getNumber(o, 'b'))
  local l = floorPowerOfTwo(n)
  local from, to = bucketKey(o, n - l), bucketKey(o, n)
  for _, fingerprint in ipairs(call('SMEMBERS', from)) do
    if bucketHash(fingerprint) % (2 * l) == n then call('SMOVE', from, to, fingerprint) end
  end
  setField(o, 'b', n + 1)
end

local function isSeen(o, fingerprint) return call('SISMEMBER', bucketKeyOf(o, fingerprint), fingerprint) == 1 end

local function addSeen(o, fingerprint)
  call('SADD', bucketKeyOf(o, fingerprint), fingerprint)
  addToField(o, 'c', 1)
  addToField(meta, 'seen', 1)
  if getNumber(o, 'c') > maxBucketSize * math.max(1, getNumber(o, 'b')) then splitBucket(o) end
end

-- addIfUnseen puts a fingerprint into the seen set; false if it was there.
local function addIfUnseen(o, fingerprint)
  if isSeen(o, fingerprint) then return false end
  addSeen(o, fingerprint)
  return true
end
