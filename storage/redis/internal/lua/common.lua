-- What all verbs share. KEYS[1] begins every key of the partition. ARGV[1] is the
-- time in microseconds since 1970 that the caller was told, or empty: then this
-- server's clock counts, and times in arguments are offsets from it. Numbers are
-- doubles, which hold microseconds to the year 2255.
local keyPrefix, call = KEYS[1], redis.call
local now, clockOffset = tonumber(ARGV[1]), 0
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
  clockOffset = now
end

-- parseTime reads a time of the arguments: empty is none, and is kept as 0.
local function parseTime(s)
  if s == '' then return 0 end
  return math.max(0, math.min(9007199254740991, clockOffset + tonumber(s)))
end

-- Objects are hashes that a call reads once, changes, and writes once in the end.
-- A field that is 0 or empty is not there.
local hashes = {}

local function loadHash(key)
  local o = hashes[key]
  if o then return o end
  o = {key = keyPrefix .. key, fields = {}, changed = {}}
  local flat = call('HGETALL', o.key)
  o.new = #flat == 0
  for i = 1, #flat, 2 do o.fields[flat[i]] = flat[i + 1] end
  hashes[key] = o
  return o
end

local function getNumber(o, field) return tonumber(o.fields[field]) or 0 end

local function setField(o, field, value)
  if value == 0 or value == '' then value = nil end
  if o.fields[field] == value or value and tonumber(o.fields[field]) == value then return end
  o.fields[field], o.changed[field] = value, true
end

local function addToField(o, field, n)
  if n ~= 0 then setField(o, field, getNumber(o, field) + n) end
end

-- formatInteger writes a whole number, which the server would take longer for.
local function formatInteger(n) return string.format('%d', n) end

local function saveHash(o)
  local updates, deletions = {}, {}
  for field in pairs(o.changed) do
    if o.fields[field] == nil then
      deletions[#deletions + 1] = field
    else
      local value = o.fields[field]
      if type(value) == 'number' then value = formatInteger(value) end
      updates[#updates + 1], updates[#updates + 2] = field, value
    end
  end
  o.changed = {}
  if #deletions > 0 then call('HDEL', o.key, unpack(deletions)) end
  if #updates > 0 then call('HSET', o.key, unpack(updates)) end
end

local meta = loadHash('m')

local function loadHost(name)
  local h = loadHash('h:' .. name)
  if h.new then
    -- A host that is new needs no rest for a failover, once its fence is over.
    h.new, h.name = false, name
    setField(h, 'f', now < getNumber(meta, 'fence') and getNumber(meta, 'epoch') - 1 or getNumber(meta, 'epoch'))
  end
  h.name = name
  return h
end

-- findOrigin returns an origin that was met, or nil.
local function findOrigin(name)
  local o = loadHash('o:' .. name)
  o.name = name
  if o.new then return nil end
  return o
end

-- findOrAddOrigin returns an origin, which is noted if it is new.
local function findOrAddOrigin(name, hostName)
  local o = findOrigin(name)
  if o then return o end
  o = loadHash('o:' .. name)
  o.new, o.fields.H, o.changed.H = false, hostName, true
  if name ~= '' then call('RPUSH', keyPrefix .. 'a', name) end
  return o
end

local function firstMember(key)
  local t = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return t[1], tonumber(t[2])
end
