class Body:
    def __init__(self, x, y, z, vx, vy, vz, mass):
        self.x, self.y, self.z, self.vx, self.vy, self.vz, self.mass = x, y, z, vx, vy, vz, mass


def run():
    bodies = [Body(i * 1.7, -i * 0.9, i * 0.3, 0.01 * i, 0.02, -0.01 * i, 1.0 / (i + 1)) for i in range(5)]
    for _ in range(1500):
        for i, a in enumerate(bodies):
            for b in bodies[i + 1 :]:
                dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
                far = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5 * 0.001
                a.vx -= dx * b.mass * far
                a.vy -= dy * b.mass * far
                a.vz -= dz * b.mass * far
                b.vx += dx * a.mass * far
                b.vy += dy * a.mass * far
                b.vz += dz * a.mass * far
        for a in bodies:
            a.x += a.vx * 0.001
            a.y += a.vy * 0.001
            a.z += a.vz * 0.001
